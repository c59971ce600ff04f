import re

import pytest

from experiments import figure1
from experiments.cli import main
from experiments.pairs import pair_config
from experiments.peers import BEST, SMALLEST
from experiments.records import Records


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A folder with records of every kind."""
    folder = tmp_path_factory.mktemp("run")
    records = Records(folder)
    for method, accuracy in (("rbf", 0.7), ("ours", 0.9)):
        for size in (100, 500):
            for seed in range(2):
                config = pair_config("auto-truck", method, size, seed)
                outcome = {"test_accuracy": accuracy + seed / 100 + size / 1e4}
                records.append(config, outcome, 1.0)
    synthetic = {"test_accuracy": 0.9, "train_accuracy": 0.95, "fit_seconds": 1.0, "size": 7}
    for kind in ("windmill", "checkerboard"):
        config = {"kind": kind, "method": "a <model>", "seed": 0, "n_train": 10, "n_test": 20}
        records.append(config, synthetic, 1.0)
    peer = {
        "test_accuracy": 0.8,
        "fit_seconds": 1.0,
        "predict_microseconds": 2.0,
        "bytes": 1000,
        "chosen_size": 100,
    }
    for size in (SMALLEST, BEST):
        config = {"kind": "peer", "task": "mnist-4-9", "method": "svc", "size": size, "seed": 0}
        records.append(config, peer, 1.0)
    for config in figure1.figure1_configs(n_train=150, n_test=300, n_rounds=12):
        records.append(config, figure1.run_figure1(config, load=None, smoothing=0.06), 1.0)
    return folder


@pytest.mark.slow
def test_the_page_has_a_section_for_every_kind(run_folder, capsys):
    page = run_folder / "report.html"
    assert main(["report", str(run_folder), "--output", str(page)]) == 0
    assert capsys.readouterr().out.strip() == str(page)
    text = page.read_text(encoding="utf-8")
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", text)
    assert len(titles) == 7
    for title in (
        "Test accuracy by number of features",
        "Accuracy by number of features",
        "The checkerboard on the sphere",
        "The windmill",
        "The checkerboard",
        "Peers on mnist-4-9",
    ):
        assert title in titles
    assert '<td class="best">91.50<span class="theirs"> (84.80)</span></td>' in text
    assert "a &lt;model&gt;" in text
    # The page is one file.
    assert not re.search(r'(src|href)="(?!data:|#)', text)


def test_a_folder_without_usable_records_is_rejected(tmp_path, capsys):
    page = tmp_path / "page.html"
    command = ["report", str(tmp_path), "-o", str(page)]
    assert main(command) == 1
    assert "has no records" in capsys.readouterr().err
    Records(tmp_path).append({"kind": "unknown"}, {}, 0.0)
    assert main(command) == 1
    assert "only records of unknown kinds" in capsys.readouterr().err
    Records(tmp_path).path.write_text("garbage\n")
    assert main(command) == 1
    assert "is not a record" in capsys.readouterr().err
    assert not page.exists()

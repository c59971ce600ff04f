import numpy as np

from experiments import tasks


def test_a_task_has_the_images_of_two_classes(monkeypatch):
    rng = np.random.default_rng(0)
    digits = rng.integers(0, 256, size=(40, 784)).astype(np.uint8)
    labels = np.arange(40) % 10
    monkeypatch.setattr(tasks, "fetch_mnist", lambda home: (digits, labels, digits, labels))
    task = tasks.load_task.__wrapped__("mnist-4-9")
    assert task.X.dtype == np.float32
    np.testing.assert_array_equal(task.y, [0, 1] * 4)
    np.testing.assert_allclose(task.X[1], digits[9] / 255, rtol=1e-6)
    images = rng.integers(0, 256, size=(20, 32, 32, 3)).astype(np.uint8)
    kinds = np.arange(20) % 10
    monkeypatch.setattr(tasks, "fetch_cifar10", lambda home: (images, kinds, images, kinds))
    monkeypatch.setattr(tasks, "hog", lambda part, home: part[:, 0, 0].astype(np.float32))
    task = tasks.load_task.__wrapped__("auto-truck")
    np.testing.assert_array_equal(task.y, [0, 1, 0, 1])
    np.testing.assert_array_equal(task.X[1], images[9, 0, 0])

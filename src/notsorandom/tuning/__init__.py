"""What a fit chooses by itself: settings by trial games, the number of features, a temperature."""

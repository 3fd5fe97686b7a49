"""One file of typed settings for each room that reads configuration. Import the modules."""

"""The command line: argument parsing, then one call. Files, standard streams and exit codes are its business."""

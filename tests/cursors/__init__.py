"""Tests of the log, of cursors into it, and of who reads them."""

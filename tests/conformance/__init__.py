"""Conformance with lkp-tests: its job files and fixtures, run through its programs and swingbot's.

This repository contains no part of lkp-tests.
"""

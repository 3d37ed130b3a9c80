"""What EAGLE-3 drafts look like on disk: names of tensors, configs, ways to count layers, headers of files. No torch."""

collect_ignore_glob = ["broken/*"]

"""The pages of the documentation site that are computed, and the hooks of mkdocs.yml.

``make docs`` builds the site. Nothing here is stored: each page is written from the code (commands,
models, families, engines) or by running commands, whenever the site is built.
"""

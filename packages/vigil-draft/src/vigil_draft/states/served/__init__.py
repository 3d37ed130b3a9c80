"""Hidden states of a target that is served: asked for document by document, checked, and written like those in process."""

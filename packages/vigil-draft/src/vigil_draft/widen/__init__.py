"""A model that answers like a small one and costs like a large one: for measuring speculation at a real price."""

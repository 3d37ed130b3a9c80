"""`vigil draft convert`: a draft in another format, its tensors byte for byte the same; refused where the other cannot say it."""

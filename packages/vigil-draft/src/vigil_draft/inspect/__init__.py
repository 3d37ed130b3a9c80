"""`vigil draft inspect`: what a draft is, and what each engine and release makes of it."""

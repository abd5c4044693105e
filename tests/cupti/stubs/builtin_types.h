// In the place of the CUDA runtime's header, which wants the compiler's own: the activity records need nothing of it.

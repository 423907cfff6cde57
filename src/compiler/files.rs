//! Files of a compilation on disk.

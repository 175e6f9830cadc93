"""Programs of Tracr, from their own Python source: our version of its language, and what turns it into ours."""

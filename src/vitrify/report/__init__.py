"""Evidence as pages to look at: the atlas, its figures and maps, and the frame that the app uses too."""

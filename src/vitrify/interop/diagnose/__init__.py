"""Other people's models on our stress tests: trained or asked under a declared budget, beside what theorems say."""

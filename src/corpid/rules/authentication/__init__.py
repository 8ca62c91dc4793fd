"""Rules of signing in: factors, assurance levels, single sign-on."""

# The setting of the build: README.rst describes it.
export DIB_HEADGATE_DEB=${DIB_HEADGATE_DEB:-}

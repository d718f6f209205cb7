# The settings of the build: README.rst describes them.
export DIB_HEADGATE_DEB=${DIB_HEADGATE_DEB:-}
export DIB_HEADGATE_CONFIG=${DIB_HEADGATE_CONFIG:-}
export DIB_HEADGATE_VRRP=${DIB_HEADGATE_VRRP:-0}

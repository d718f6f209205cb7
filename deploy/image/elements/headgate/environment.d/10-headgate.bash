# What the image is to hold: README.rst says what each means.
export DIB_HEADGATE_DEB=${DIB_HEADGATE_DEB:-}
export DIB_HEADGATE_CONFIG=${DIB_HEADGATE_CONFIG:-}
export DIB_HEADGATE_VRRP=${DIB_HEADGATE_VRRP:-0}

#!/bin/sh
# Writes the root filesystem of the container image into the archive $1, from Debian's packages: what HAProxy, keepalived,
# BIRD, nftables and conntrack need, without documents, languages and Perl's modules, which only installing packages needs.
# HEADGATE_DEBIAN_MIRROR sets another mirror.
set -eu

SUITE=bookworm
mirror=${HEADGATE_DEBIAN_MIRROR:-http://deb.debian.org/debian}
security=${HEADGATE_DEBIAN_SECURITY_MIRROR:-http://deb.debian.org/debian-security}

exec mmdebstrap --quiet --variant=essential --components=main \
  --include=haproxy,keepalived,bird2,nftables,conntrack,conntrackd,iproute2,libstdc++6 \
  --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='cd "$1" && rm -rf usr/share/perl usr/share/perl5 usr/lib/*-linux-gnu/perl usr/lib/*-linux-gnu/perl-base \
    usr/lib/*-linux-gnu/perl5 usr/share/misc usr/share/i18n usr/lib/*-linux-gnu/gconv var/lib/apt var/cache etc/machine-id' \
  --customize-hook='mkdir -p "$1/var/cache" "$1/var/lib/headgate" "$1/run/headgate"' \
  "$SUITE" "$1" "deb $mirror $SUITE main" "deb $mirror $SUITE-updates main" "deb $security $SUITE-security main"

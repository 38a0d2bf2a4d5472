#!/bin/sh
# Installs fedvote for a server or a client, upgrades it, and takes an upgrade back.
#
#   install.sh                        install this clone below /srv/fedvote; again: upgrade
#   install.sh --units server         also install the systemd units of a server (or: client)
#   install.sh --rollback             go back to the version before the last upgrade
#
#   --prefix FOLDER     instead of /srv/fedvote
#   --source PATH       a clone or a wheel; default: the clone that this file is in
#   --python PROGRAM    the Python that runs it; default: python3
#   --root FOLDER       of the file system that gets the units; default: /
#   --extra NAME        flower (default), or flower-simulation
#
# Each version has a folder of its own, PREFIX/versions/N. PREFIX/venv points to the one that runs, PREFIX/previous to
# the one before. The link is changed in one step, after the new version has started once. So a failed installation
# leaves the old version running, and a rollback takes no download.
set -eu

prefix=/srv/fedvote python=python3 root= units= extra=flower rollback=
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
source=$(dirname -- "$(dirname -- "$here")")

fail() { echo "install.sh: $1" >&2; exit 2; }

while [ $# -gt 0 ]; do
  case $1 in
    --rollback) rollback=yes; shift; continue ;;
    --prefix|--source|--python|--root|--units|--extra) [ $# -gt 1 ] || fail "$1 needs a value" ;;
    *) fail "there is no option $1; known: --prefix --source --python --root --units --extra --rollback" ;;
  esac
  case $1 in
    --prefix) prefix=$2 ;;
    --source) source=$2 ;;
    --python) python=$2 ;;
    --root) root=$2 ;;
    --units) units=$2 ;;
    --extra) extra=$2 ;;
  esac
  shift 2
done
case $units in ''|server|client) ;; *) fail "--units is $units, expected server or client" ;; esac

point() { # point LINK at TARGET in one step
  ln -s "$2" "$1.new" && mv -T "$1.new" "$1"
}

if [ -n "$rollback" ]; then
  [ -L "$prefix/previous" ] || fail "$prefix has no earlier version to go back to"
  now=$(readlink "$prefix/venv") before=$(readlink "$prefix/previous")
  point "$prefix/venv" "$before"
  point "$prefix/previous" "$now"
  echo "$prefix/venv is $before again: restart the services"
  exit 0
fi

[ -e "$source" ] || fail "$source does not exist, expected a clone or a wheel of fedvote"
umask 077
mkdir -p "$prefix/versions"
chmod 700 "$prefix"
number=1
while [ -e "$prefix/versions/$number" ]; do number=$((number + 1)); done
fresh=versions/$number
trap 'rm -rf "${prefix:?}/$fresh"' EXIT  # an installation that fails leaves nothing behind
"$python" -m venv "$prefix/$fresh"
# shellcheck disable=SC2086
"$prefix/$fresh/bin/python" -m pip install --quiet ${FEDVOTE_PIP_OPTIONS:-} "$source[$extra]"
version=$("$prefix/$fresh/bin/fedvote" --version) || fail "the new version does not start; the old one stays"
trap - EXIT

[ -L "$prefix/venv" ] && point "$prefix/previous" "$(readlink "$prefix/venv")"
point "$prefix/venv" "$fresh"

if [ -n "$units" ]; then
  folder=$root/etc/systemd/system
  umask 022
  mkdir -p "$folder"
  case $units in
    server) chosen="fedvote-superlink fedvote-job" ;;
    client) chosen=fedvote-client ;;
  esac
  for unit in $chosen; do
    sed "s|/srv/fedvote|$prefix|g" "$here/$unit.service" > "$folder/$unit.service"
    chmod 644 "$folder/$unit.service"
  done
  echo "installed $chosen in $folder: edit names and paths, then systemctl daemon-reload"
fi
echo "$version is in $prefix/venv"

#!/usr/bin/env bash
# Builds a container image from the redis-server that is installed here, for
# machines that can reach no image registry.
#
#   internal/testimage/build.sh [tag]     default tag: redlock-redis:local
#   REDLOCK_REDIS_IMAGE=redlock-redis:local docker-compose up -d
#
# The image holds redis-server, redis-cli and the libraries they need: no shell,
# no package manager. Arguments go to redis-server, as with the official image.
set -euo pipefail

tag=${1:-redlock-redis:local}
server=$(command -v redis-server) || { echo "no redis-server is installed" >&2; exit 1; }
cli=$(command -v redis-cli) || { echo "no redis-cli is installed" >&2; exit 1; }

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root/usr/bin" "$root/data" "$root/tmp"
chmod 1777 "$root/tmp"
# -L: distributions install redis-server as a link to a program of many names.
cp -L "$server" "$root/usr/bin/redis-server"
cp -L "$cli" "$root/usr/bin/redis-cli"

# Libraries keep their paths, because the loader looks for them there. The loader
# itself stands in ldd's output without an arrow.
ldd "$server" "$cli" | grep -oE '/[^ ]+\.so[^ ]*' | sort -u | while read -r lib; do
  mkdir -p "$root${lib%/*}"
  cp -L "$lib" "$root$lib"
done

tar -C "$root" -c . | docker import \
  -c 'ENTRYPOINT ["/usr/bin/redis-server"]' \
  -c 'CMD ["--protected-mode", "no"]' \
  -c 'EXPOSE 6379' \
  -c 'VOLUME /data' \
  -c 'WORKDIR /data' \
  - "$tag" >/dev/null
docker run --rm "$tag" --version

import { mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { readPage, shellBlock } from '../support/pages.ts'
import { runOnTerminal } from '../support/terminal.ts'
import { needs, needsRoot } from '../support/tools.ts'
import { type ImageBuilder, prepareBuilder, TIMEOUT } from './image.ts'

const PASSWORD = 'correct horse battery staple'

/** As in `container.ts`: crun needs mounts of its own beside cgroup v1. */
const CRUN = `#!/bin/sh
exec unshare --mount sh -c 'umount -l /sys/fs/cgroup/unified 2>/dev/null; exec /usr/bin/crun --cgroup-manager=disabled "$@"' sh "$@"
`

/** Makes the programs `docker`, which is Podman with the store of the builder, and `editor`, and returns their folder. */
function makePrograms({ store }: ImageBuilder): string {
  const folder = temporaryDirectory()
  const configuration = `[containers]
cgroups = "disabled"
netns = "host"
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
volume_path = "${join(folder, 'volumes')}"
runtime = "crun"
[engine.runtimes]
crun = ["${join(folder, 'crun')}"]
`
  writeFileSync(join(folder, 'containers.conf'), configuration)
  const docker = `export CONTAINERS_CONF='${join(folder, 'containers.conf')}' BUILDAH_ISOLATION=chroot TMPDIR='${folder}'`
  // A build downloads Debian's packages, so it has the network of this machine.
  const build = `if [ "$1" = build ]; then exec nsenter --net=/proc/${process.pid}/ns/net podman ${store.join(' ')} "$@"; fi`
  const programs = {
    crun: CRUN,
    docker: `#!/bin/sh\n${docker}\n${build}\nexec podman ${store.join(' ')} "$@"\n`,
    editor: `#!/bin/sh\nexec sed -i 's|http://192.0.2.10:80$|http://127.0.0.1:8080|' "$1"\n`,
  }
  for (const [name, text] of Object.entries(programs))
    writeFileSync(join(folder, name), text, { mode: 0o755 })
  return folder
}

it(
  'the commands of docs/installing.md for Docker build, check, run and remove Postern, by Podman',
  async () => {
    needsRoot()
    for (const tool of [
      'podman',
      'buildah',
      'crun',
      'mmdebstrap',
      'unshare',
      'nsenter',
      'ip',
      'curl',
      'bash',
    ])
      needs(tool)
    const builder = await prepareBuilder()
    const programs = makePrograms(builder)
    const etc = temporaryDirectory()
    for (const name of ['upper', 'work']) mkdirSync(join(etc, name))
    const copy = 'docker cp postern:/var/lib/postern/tls/cert.pem .'
    expect(readPage('docs/installing.md')).toContain(`\`${copy}\``)
    const curl = 'curl -fsS --cacert cert.pem https://localhost:8443'
    // A network and an /etc of its own, so that nothing on this machine changes.
    const script = `set -e
mount -t overlay overlay -o 'lowerdir=/etc,upperdir=${join(etc, 'upper')},workdir=${join(etc, 'work')}' /etc
ip link set lo up
dist/postern-linux-${process.arch} demo --device 127.0.0.1:8080 &
device=$!
${shellBlock('docs/installing.md', 'docker build')}
until curl -ksS -o /dev/null https://localhost:8443; do sleep 0.1; done
${copy}
token=$(printf %s '${PASSWORD}' | ${curl}/oauth/token -d grant_type=password --data-urlencode password@- |
  sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
${curl}/api/system -H "Authorization: Bearer $token"
docker exec postern postern status
${shellBlock('docs/installing.md', 'docker rm')}
echo "left: $(docker ps -aq)$(docker volume ls -q)$(docker images -q postern)$(ls -d /etc/postern 2>&1)"
kill $device
`
    const { code, screen } = await runOnTerminal(
      ['unshare', '--mount', '--net', 'bash', '-c', script],
      { cwd: builder.context, env: { ...process.env, PATH: [programs, process.env.PATH].join(delimiter) } },
      ['Password: ', `${PASSWORD}\r`],
    )
    expect(code, screen).toBe(0)
    expect(screen).not.toContain(PASSWORD)
    expect(screen).toContain('"model":"PowerDist 8"')
    expect(screen).toContain('1 grant, 1 access token')
    expect(screen).toMatch(/^left: ls: cannot access '\/etc\/postern'/m)
  },
  TIMEOUT,
)

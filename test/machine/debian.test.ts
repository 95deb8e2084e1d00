import { createHash } from 'node:crypto'
import {
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type DebianPackage, makeDebianPackage } from '../../deploy/build/debian.ts'
import { makeExecutable } from '../../deploy/build/executable.ts'
import { VERSION } from '../../src/version.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { installedBundle } from '../support/shipped.ts'
import { isInstalled, run } from '../support/tools.ts'
import { bootMachine, installDebian, type Machine, needsMachine } from './machine.ts'

const REPOSITORY = join(import.meta.dirname, '..', '..')
const PASSWORD = 'correct horse battery staple'
/** The machine has the processor of this one. */
const PROCESSOR = process.arch === 'arm64' ? 'arm64' : 'x64'
const NEXT_VERSION = '99.0.0'
const TOOLS = ['systemd-nspawn', 'nsenter']

/** The blocks of commands in the section of a page, in order. */
function blocksOf(page: string, section: string): readonly string[] {
  const text = readFileSync(join(REPOSITORY, page), 'utf8')
  const [, body = ''] = text.split(`\n## ${section}\n`)
  return [...(body.split(/^## /m)[0] ?? '').matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
}

// The third, a first request, is for a terminal: test/readme.test.ts runs it.
const [INSTALL = '', START = '', , PORT_443 = '', REMOVE = '', PURGE = ''] = blocksOf(
  'docs/installing.md',
  'On Debian',
)

let machine: Machine
/** The newer package, whose configuration differs. */
let newer: string
let newerPackage: DebianPackage
/** The files before the installation. */
let before: ReadonlyMap<string, string>
let accessToken: string

async function prepare(): Promise<void> {
  const folder = temporaryDirectory()
  const root = await installDebian([
    '--variant=minbase',
    '--include=systemd,systemd-sysv,curl',
    // The machine has no network, so the packages that its apt will install come along.
    '--skip=cleanup/apt',
    '--customize-hook=chroot "$1" apt-get install -y --download-only adduser libatomic1 libstdc++6',
  ])
  const executable = join(folder, 'postern')
  await makeExecutable(join(installedBundle(), 'dist'), PROCESSOR, executable)
  const parts = {
    executable,
    processor: PROCESSOR,
    licences: '',
    time: 1_700_000_000,
    folder,
    compression: 'gzip',
  } as const
  const current = await makeDebianPackage({ ...parts, version: VERSION })
  const configuration = readFileSync(join(REPOSITORY, 'deploy/postern.yaml'), 'utf8')
  newerPackage = {
    ...parts,
    version: NEXT_VERSION,
    configuration: `${configuration}# A key that the newer version brings.\n`,
  }
  newer = await makeDebianPackage(newerPackage)
  copyFileSync(current, join(root, 'root', basename(current)))
  copyFileSync(newer, join(root, 'root', basename(newer)))
  addDevice(root)
  machine = await bootMachine(root)
}

/** A device behind a socket of systemd, and an editor that writes its address into the file. */
function addDevice(root: string): void {
  const units = join(root, 'etc/systemd/system')
  writeFileSync(join(units, 'device.socket'), '[Socket]\nListenStream=127.0.0.1:8080\nAccept=yes\n')
  mkdirSync(join(units, 'sockets.target.wants'), { recursive: true })
  symlinkSync('../device.socket', join(units, 'sockets.target.wants/device.socket'))
  writeFileSync(
    join(units, 'device@.service'),
    '[Service]\nStandardInput=socket\nExecStart=/usr/local/bin/device\n',
  )
  const programs = join(root, 'usr/local/bin')
  const device = `#!/bin/sh
while read -r line && [ "$line" != "$(printf '\\r')" ]; do :; done
printf 'HTTP/1.1 200 OK\\r\\nContent-Length: 7\\r\\nConnection: close\\r\\n\\r\\ndevice\\n'
`
  writeFileSync(join(programs, 'device'), device, { mode: 0o755 })
  const editor = `#!/bin/sh\nexec sed -i 's|http://192.0.2.10:80$|http://127.0.0.1:8080|' "$1"\n`
  writeFileSync(join(programs, 'editor'), editor, { mode: 0o755 })
}

/** Runs a command in the machine, which must succeed, and returns what it prints. */
async function inside(command: string, input?: string): Promise<string> {
  const { code, stdout, stderr } = await machine.run(`set -e\n${command}`, input)
  if (code !== 0) throw new Error(`${command}\nended with ${code}\n${stdout}${stderr}`)
  return stdout
}

const curl = (args: string): string => `curl -sS --cacert /var/lib/postern/tls/cert.pem ${args}`

/** Requests the device with a token. Retries until the sidecar listens. */
function ask(token: string, port = 8443): Promise<string> {
  const retries = '--retry 20 --retry-delay 1 --retry-all-errors'
  return inside(
    curl(`${retries} -w '%{http_code}' https://localhost:${port}/ -H @-`),
    `Authorization: Bearer ${token}\n`,
  )
}

const state = async (unit: string): Promise<string> =>
  (await machine.run(`systemctl is-active ${unit}`)).stdout.trim()

/**
 * Every file outside of what any use of the machine changes, with its mode, its owner and, in `etc`, its content. Logs, caches and
 * lists of packages change, as do the backups of /etc/passwd.
 */
function filesOf(root: string): Map<string, string> {
  const changing =
    /^(?:root|proc|sys|dev|run|tmp|var\/(?:log|cache|tmp|lib\/(?:apt|dpkg|systemd\/(?!deb-systemd-helper)\w+))|etc\/(?:passwd|group|g?shadow|sub[ug]id)-)(?:\/|$)/
  const found = new Map<string, string>()
  const visit = (folder: string): void => {
    for (const name of readdirSync(join(root, folder))) {
      const path = folder === '' ? name : `${folder}/${name}`
      if (changing.test(path)) continue
      const { mode, uid, gid } = lstatSync(join(root, path))
      const isText = path.startsWith('etc/') && (mode & 0o170000) === 0o100000
      const content = isText
        ? createHash('sha256')
            .update(readFileSync(join(root, path)))
            .digest('hex')
        : ''
      found.set(path, `${mode.toString(8)} ${uid}:${gid} ${content}`)
      if ((mode & 0o170000) === 0o040000) visit(path)
    }
  }
  visit('')
  return found
}

describe('A fresh Debian', () => {
  beforeAll(async () => {
    if (process.getuid?.() === 0 && ['mmdebstrap', ...TOOLS].every(isInstalled)) await prepare()
  }, 900_000)

  it('gets a package without a fault that lintian finds, and the same bytes from every build', async () => {
    needsMachine(...TOOLS, 'lintian')
    const found = await run('lintian', ['--allow-root', '--fail-on', 'error,warning', newer], {
      timeout: 300_000,
    })
    expect(found).toEqual({ code: 0, stdout: '', stderr: '' })
    const again = await makeDebianPackage({ ...newerPackage, folder: temporaryDirectory() })
    expect(readFileSync(again).equals(readFileSync(newer))).toBe(true)
  })

  it('installs the package and what it needs by the printed command; the service waits for its configuration', async () => {
    needsMachine(...TOOLS)
    before = filesOf(machine.root)
    const installed = await inside(INSTALL, 'y\n')
    expect(installed).toContain('libatomic1')
    expect(await inside('systemctl is-enabled postern')).toBe('enabled\n')
    expect(await state('postern')).toBe('inactive')
    expect(await inside('stat -c "%a %U:%G" /etc/postern /etc/postern/postern.yaml /var/lib/postern')).toBe(
      '750 root:postern\n640 root:postern\n700 postern:postern\n',
    )
    expect(await inside('postern --version')).toBe(`${VERSION}\n`)
    expect(await inside('systemd-analyze verify --man=no postern.service postern.socket 2>&1')).toBe('')
  })

  it('runs the service, as its own user, after the printed commands', async () => {
    needsMachine(...TOOLS)
    const checked = await inside(START, `${PASSWORD}\n`)
    expect(checked).toContain('http://127.0.0.1:8080 answered 200')
    await expect
      .poll(() => machine.run(curl('-f http://127.0.0.1:9464/readyz')).then(({ code }) => code))
      .toBe(0)
    const granted = await inside(
      curl('-f https://localhost:8443/oauth/token -d grant_type=password --data-urlencode password@-'),
      PASSWORD,
    )
    accessToken = JSON.parse(granted).access_token
    expect(await ask(accessToken)).toBe('device\n200')
    const user = await inside('id -u postern')
    expect(await inside('sed -n "s/^Uid:\\t//p" /proc/$(systemctl show -P MainPID postern)/status')).toBe(
      `${Array(4).fill(user.trim()).join('\t')}\n`,
    )
    expect(await inside('systemd-analyze security --no-pager postern')).toMatch(
      /Overall exposure level for postern.service: [01]\.\d/,
    )
  })

  it('`status`, `check` and `revoke` find the running service without flags', async () => {
    needsMachine(...TOOLS)
    expect(await inside('postern status')).toContain('1 grant, 1 access token')
    expect(await inside('postern check')).toMatch(/^ok +device/m)
    const other = await inside(
      curl('-f https://localhost:8443/oauth/token -d grant_type=password --data-urlencode password@-'),
      PASSWORD,
    )
    const grants = JSON.parse(await inside('postern status --json')).grants
    expect(grants).toHaveLength(2)
    expect(await inside(`postern revoke --grant ${grants[1].id}`)).toBe('1 grant revoked\n')
    expect(await ask(JSON.parse(other).access_token)).toMatch(/401$/)
  })

  it('a reload changes the limits', async () => {
    needsMachine(...TOOLS)
    await inside(
      "sed -i 's|^  # api: .*|  api: {requests: 61}|' /etc/postern/postern.yaml && systemctl reload postern",
    )
    await expect
      .poll(() => inside(curl('-D - -o /dev/null https://localhost:8443/')))
      .toMatch(/^x-ratelimit-limit: 61\r$/m)
  })

  it('C7 a token outlives a reboot', async () => {
    needsMachine(...TOOLS)
    await machine.reboot()
    expect(await ask(accessToken)).toBe('device\n200')
  })

  it('serves port 443 after the printed commands', async () => {
    needsMachine(...TOOLS)
    await inside("sed -i 's|^listen:|listen:\\n  address: fd:3|' /etc/postern/postern.yaml")
    await inside(PORT_443)
    expect(await ask(accessToken, 443)).toBe('device\n200')
  })

  it('H119 an upgrade keeps tokens, the edited configuration and the open port', async () => {
    needsMachine(...TOOLS)
    const edited = await inside('cat /etc/postern/postern.yaml')
    const opened = await inside('systemctl show -P ActiveEnterTimestampMonotonic postern.socket')
    const previous = await inside('systemctl show -P MainPID postern')
    // dpkg asks whether to keep the file, which both sides changed. Enter takes its answer.
    await inside(`apt-get install -y ./${basename(newer)}`, '\n')
    expect(await inside("postern --version; dpkg-query -s postern | sed -n 's/^Version: //p'")).toMatch(
      `${VERSION}\n${NEXT_VERSION}\n`,
    )
    expect(await inside('cat /etc/postern/postern.yaml')).toBe(edited)
    expect(await inside('cat /etc/postern/postern.yaml.dpkg-dist')).toContain('that the newer version brings')
    expect(await inside('systemctl show -P ActiveEnterTimestampMonotonic postern.socket')).toBe(opened)
    expect(await ask(accessToken, 443)).toBe('device\n200')
    expect(await inside('systemctl show -P MainPID postern')).not.toBe(previous)
  })

  it('stops the service at the removal, and finds configuration and tokens when it is installed again', async () => {
    needsMachine(...TOOLS)
    await inside(REMOVE)
    expect([await state('postern.service'), await state('postern.socket')]).toEqual(['inactive', 'inactive'])
    await inside(`apt-get install -y ./${basename(newer)}`)
    expect(await ask(accessToken, 443)).toBe('device\n200')
  })

  it('H120 a purge leaves nothing', async () => {
    needsMachine(...TOOLS)
    await inside(PURGE)
    const after = filesOf(machine.root)
    const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
      (path) => before.get(path) !== after.get(path),
    )
    expect(changed).toEqual([])
    expect((await machine.run('id postern')).code).not.toBe(0)
    expect((await machine.run('dpkg-query -s postern')).code).not.toBe(0)
    expect(await inside('systemctl --failed --plain --no-legend')).toBe('')
  })
})

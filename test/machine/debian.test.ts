import { createHash } from 'node:crypto'
import { copyFileSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type DebianPackage, makeDebianPackage } from '../../deploy/build/debian.ts'
import { VERSION } from '../../src/version.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { isInstalled, run } from '../support/tools.ts'
import { addDevice, type Operator, operatorOf, PASSWORD } from './equipment.ts'
import { useStore } from './fleet.ts'
import { bootMachine, type Machine, minimalDebian, needsMachine } from './machine.ts'
import { executableFor, PROCESSOR } from './made-once.ts'

const REPOSITORY = join(import.meta.dirname, '..', '..')
const NEXT_VERSION = '99.0.0'
const TOOLS = ['systemd-nspawn', 'nsenter']

const INSTALL = shellBlock('docs/installing.md', 'apt-get install ./postern')
const START = shellBlock('docs/installing.md', 'asks for both')
/** Without `postern init`, which needs a terminal. */
const BY_HAND = shellBlock('docs/installing.md', 'asks twice')
const CHECK_NEWER = shellBlock('docs/sizing.md', 'dpkg-deb --extract')
const PORT_443 = shellBlock('docs/installing.md', 'enable --now postern.socket')
const [REMOVE = '', PURGE = ''] = shellBlock('docs/installing.md', 'apt-get remove').split('\n')

let machine: Machine
let operator: Operator
/** The newer package, whose configuration differs. */
let newer: string
let newerPackage: DebianPackage
/** The files before the installation. */
let before: ReadonlyMap<string, string>
let accessToken: string

async function prepare(): Promise<void> {
  const folder = temporaryDirectory()
  const [root, executable] = [await minimalDebian(), await executableFor()]
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
  operator = operatorOf(machine)
}

const inside: Operator['type'] = (commands, input) => operator.type(commands, input)
const ask: Operator['ask'] = (token, port) => operator.ask(token, port)

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
    // The package prints the commands of the page. apt gives dpkg a terminal, which adds carriage returns.
    expect(installed.replaceAll('\r', '')).toContain(START.trim().replace(/^/gm, '  '))
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
    const checked = await inside(BY_HAND, `${PASSWORD}\n`)
    expect(checked).toContain('http://127.0.0.1:8080 answered 200')
    accessToken = await operator.logIn()
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
    const other = await operator.logIn()
    const grants = JSON.parse(await inside('postern status --json')).grants
    expect(grants).toHaveLength(2)
    expect(await inside(`postern revoke --grant ${grants[1].id}`)).toBe('1 grant revoked\n')
    expect(await ask(other)).toMatch(/401$/)
  })

  it('a reload changes the limits', async () => {
    needsMachine(...TOOLS)
    await inside(
      "sed -i 's|^  # api: .*|  api: {requests: 61}|' /etc/postern/postern.yaml && systemctl reload postern",
    )
    await expect
      .poll(() => inside('curl -ksS -D - -o /dev/null https://localhost:8443/'))
      .toMatch(/^x-ratelimit-limit: 61\r$/m)
  })

  it('H76 an installation fails if the service does not start, and says where the reason is', async () => {
    needsMachine(...TOOLS)
    await inside('mv /etc/postern/password .')
    const { code, stderr } = await machine.run(`dpkg -i postern_${VERSION}_*.deb`)
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('postern does not start. The reason: journalctl -u postern -n 20.'),
    ])
    expect(await inside('journalctl --sync; journalctl -u postern -n 20 -o cat')).toMatch(
      /^postern serve: .*password/m,
    )
    await inside('mv password /etc/postern/ && dpkg --configure postern')
    expect(await ask(accessToken)).toBe('device\n200')
  })

  it('C7 a token outlives a reboot', async () => {
    needsMachine(...TOOLS)
    await machine.reboot()
    expect(await ask(accessToken)).toBe('device\n200')
  })

  it('keeps its tokens in the store that the commands of docs/fleet.md set up', async () => {
    needsMachine(...TOOLS)
    await useStore(operator)
  })

  it('serves port 443 after the printed commands', async () => {
    needsMachine(...TOOLS)
    await inside("sed -i 's|^  address: auto$|  address: fd:3|' /etc/postern/postern.yaml")
    await inside(PORT_443)
    expect(await ask(accessToken, 443)).toBe('device\n200')
  })

  it('H119 an upgrade keeps tokens, the edited configuration and the open port', async () => {
    needsMachine(...TOOLS)
    const edited = await inside('cat /etc/postern/postern.yaml')
    const opened = await inside('systemctl show -P ActiveEnterTimestampMonotonic postern.socket')
    const previous = await inside('systemctl show -P MainPID postern')
    // The newer version reads the configuration before it is installed.
    expect(
      await inside(replaceIn(CHECK_NEWER, './postern_1.0.0_amd64.deb', `./${basename(newer)}`)),
    ).not.toMatch(/unknown key|^FAILED +configuration/m)
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

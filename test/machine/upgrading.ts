import { hash } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { makeDebianPackage } from '../../deploy/build/debian.ts'
import { VERSION } from '../../src/version.ts'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { hasCommit, isInstalled, needsCommit } from '../support/tools.ts'
import { type Operator, operatorOf } from './equipment.ts'
import { type Former, formerConfigurations, formerPackage } from './former.ts'
import { bootMachine, type Machine, minimalDebian, needsMachine } from './machine.ts'
import { executableFor, madeOnce, PROCESSOR } from './made-once.ts'

const TOOLS = ['systemd-nspawn', 'nsenter', 'git', 'npm', 'openssl']

/** Whether the tests of an upgrade from a commit can run: see `needsUpgrade`. */
export function canUpgrade(commit: Former): boolean {
  return process.getuid?.() === 0 && ['mmdebstrap', ...TOOLS].every(isInstalled) && hasCommit(commit)
}

/** A test of an upgrade from a commit calls this first. */
export function needsUpgrade(commit: Former): void {
  needsMachine(...TOOLS)
  needsCommit(commit)
}

/** The passwords of the three names, or the sources, of `former/`. */
export const PASSWORDS = {
  file: 'correct-horse-battery',
  htpasswd: 'second-horse-battery',
  shadow: 'third-horse-battery',
}

/** How often clients saw each status, and how often a connection failed. */
export interface Seen {
  readonly statuses: Readonly<Record<string, number>>
  readonly failures: number
}

/** A Debian with the package of an earlier commit, its configurations and the present package in /root. */
export interface Upgrade extends Operator {
  readonly machine: Machine
  readonly commit: Former
  /** Installs a version by `dpkg -i`, keeps the configuration, and returns what dpkg prints. */
  readonly install: (which: 'former' | 'present') => Promise<string>
  /** The name of a package in /root. */
  readonly packages: Readonly<Record<'former' | 'present', string>>
  /** Makes one of `former/` the configuration of the service. */
  readonly configure: (name: string) => Promise<unknown>
  /** Runs a task of beside.ts with a file of tokens, and returns its report. */
  readonly beside: (task: string, tokens: string, ...args: readonly string[]) => Promise<unknown>
  /** Starts clients that use tokens in turn; the result ends them. */
  readonly poll: (tokens: string) => Promise<() => Promise<Seen>>
  /** Starts the device; after a power cut, again. */
  readonly startDevice: () => Promise<unknown>
  /** Lines of the log of the units since the machine was booted. */
  readonly log: (units: string) => Promise<string>
}

/** The unit of 27b4877 does not wait until the service listens. */
const LISTENS = 'until curl -ksS -o /dev/null https://localhost:8443/; do sleep 0.2; done'

/** The present package, as it is published but for its compression. */
function presentPackage(): Promise<string> {
  return madeOnce('present', async (path) => {
    mkdirSync(path)
    await makeDebianPackage({
      ...{ executable: await executableFor(), processor: PROCESSOR, version: VERSION, licences: '' },
      ...{ time: 1_700_000_000, folder: path, compression: 'gzip' },
    })
  })
}

/** The files of /etc/postern that the configurations of `former/` name, and these. */
async function filesOf(commit: Former): Promise<Readonly<Record<string, string>>> {
  const { certFile, keyFile } = await makeCertificate()
  const sha1 = (password: string): string => `admin:{SHA}${hash('sha1', password, 'base64')}`
  const secrets = ['page-password', 'device-password', 'device-key', 'store-password']
  return {
    password: PASSWORDS.file,
    htpasswd: sha1(PASSWORDS.htpasswd),
    shadow: `${sha1(PASSWORDS.shadow)}:19000:0:99999:7:::`,
    'cert.pem': readFileSync(certFile, 'utf8'),
    'device.pem': readFileSync(certFile, 'utf8'),
    'key.pem': readFileSync(keyFile, 'utf8'),
    ...Object.fromEntries(secrets.map((name) => [name, 'secret-of-some-length'])),
    ...Object.fromEntries([...formerConfigurations(commit)].map(([name, yaml]) => [`${name}.yaml`, yaml])),
  }
}

/** The tasks of beside.ts, which run in the machine's network but outside of it. */
function tasksBeside(machine: Machine): Pick<Upgrade, 'beside' | 'poll' | 'startDevice'> {
  const program = join(import.meta.dirname, 'beside.ts')
  const start = (...args: readonly string[]) => machine.spawnBeside([process.execPath, program, ...args])
  const folder = temporaryDirectory()
  return {
    async beside(task, tokens, ...args) {
      const child = start(task, join(folder, tokens), ...args)
      const output = child.stdout === null ? '' : await text(child.stdout)
      return JSON.parse(output.trim().split('\n').at(-1) ?? '')
    },
    async poll(tokens) {
      const child = start('poll', join(folder, tokens))
      if (child.stdout === null) throw new Error('no output')
      await once(child.stdout, 'data')
      const output = text(child.stdout)
      return async () => {
        child.kill('SIGTERM')
        return JSON.parse(await output)
      }
    },
    async startDevice() {
      const { stdout } = start('device')
      if (stdout !== null) await once(stdout, 'data')
    },
  }
}

/** Boots a Debian, and installs the package of a commit and its files. The service runs with `alone`. */
export async function prepareUpgrade(commit: Former): Promise<Upgrade> {
  const [root, former, presentFolder] = await Promise.all([
    minimalDebian(),
    formerPackage(commit),
    presentPackage(),
  ])
  const present = readdirSync(presentFolder).find((name) => name.endsWith('.deb')) ?? ''
  const packages = { former: basename(former), present }
  copyFileSync(former, join(root, 'root', packages.former))
  copyFileSync(join(presentFolder, present), join(root, 'root', present))
  const machine = await bootMachine(root)
  const operator = operatorOf(machine)
  const { type } = operator

  await type('apt-get install -y adduser libatomic1 libstdc++6')
  await type(`dpkg -i ${packages.former}`)
  for (const [name, content] of Object.entries(await filesOf(commit)))
    writeFileSync(join(root, 'etc/postern', name), `${content.trimEnd()}\n`)
  await type('chgrp postern /etc/postern/* && chmod 640 /etc/postern/*')

  const upgrade: Upgrade = {
    ...operator,
    ...tasksBeside(machine),
    machine,
    commit,
    packages,
    install: (which) => type(`dpkg -i ${packages[which]} 2>&1\n${LISTENS}`, '\n'),
    configure: (name) => type(`cat /etc/postern/${name}.yaml > /etc/postern/postern.yaml`),
    log: (units) => type(`journalctl --sync; journalctl -b -u '${units}' -o cat`),
  }
  await upgrade.startDevice()
  await upgrade.configure('alone')
  await type(`systemctl restart postern\n${LISTENS}`)
  return upgrade
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { startDevice } from '../support/device.ts'
import { unusedPort } from '../support/raw.ts'
import { PASSWORD } from '../support/sidecar.ts'
import type { Mount } from './container.ts'

const DEPLOY = join(import.meta.dirname, '../../deploy')

/** What a container gets from its host. */
export interface Setting {
  /** A folder with a configuration and a password, for `/etc/postern`. */
  readonly etc: string
  /** A folder of user 1000. */
  readonly state: string
  /** A file that names `device.example`, and `device` of `compose.yaml`. */
  readonly hosts: string
  /** All three. */
  readonly mounts: readonly Mount[]
  readonly adminUrl: string
}

/** Makes a configuration that user 1000 can read, in front of a device that only `/etc/hosts` names. */
export async function prepareSetting(): Promise<Setting> {
  const folder = temporaryDirectory()
  const [etc, state, hosts] = [join(folder, 'etc'), join(folder, 'state'), join(folder, 'hosts')]
  const admin = `127.0.0.1:${await unusedPort()}`
  const device = new URL((await startDevice()).url)
  mkdirSync(etc)
  mkdirSync(state, { mode: 0o700 })
  chownSync(state, 1000, 1000)
  writeFileSync(hosts, '127.0.0.1 device.example device localhost\n')
  writeFileSync(join(etc, 'password'), `${PASSWORD}\n`, { mode: 0o640 })
  chownSync(join(etc, 'password'), 0, 1000)
  const config = {
    listen: { address: '127.0.0.1:0' },
    admin: { address: admin },
    upstream: { url: `http://device.example:${device.port}` },
    password: { file: '/etc/postern/password' },
    log: { format: 'json' },
  }
  writeFileSync(join(etc, 'postern.yaml'), JSON.stringify(config))
  const mounts = [
    { source: etc, destination: '/etc/postern' },
    { source: state, destination: '/var/lib/postern', write: true },
    { source: hosts, destination: '/etc/hosts' },
  ]
  return { etc, state, hosts, mounts, adminUrl: `http://${admin}` }
}

/** The files of a volume by name. */
export type VolumeFiles = Readonly<Record<string, string>>

/**
 * Makes or replaces the files of a projected volume as the kubelet does: in a new folder, to which the symbolic link `..data` turns
 * by a rename. They belong to root and to the group 1000 (`fsGroup`).
 */
export function projectVolume(folder: string, files: VolumeFiles): void {
  const target = mkdtempSync(`${folder}/..version-`)
  chmodSync(target, 0o755)
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(target, name), content, { mode: 0o440 })
    chownSync(join(target, name), 0, 1000)
    if (lstatSync(join(folder, name), { throwIfNoEntry: false }) === undefined) {
      symlinkSync(join('..data', name), join(folder, name))
    }
  }
  symlinkSync(basename(target), join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
}

/** A short volume of `compose.yaml`, such as `./postern.yaml:/etc/postern/postern.yaml:ro`. The only named one is the state. */
export function mountOf(volume: string, { state }: Setting): Mount {
  const [source = '', destination = '', mode] = volume.split(':')
  return {
    source: source.startsWith('./') ? join(DEPLOY, source) : state,
    destination,
    write: mode !== 'ro',
  }
}

/** Starts the Prometheus of this machine with the files of `compose.yaml`, in the network of a process. */
export async function startPrometheus(volumes: readonly string[], network: number): Promise<void> {
  const folder = temporaryDirectory()
  for (const [source = ''] of volumes.map((volume) => volume.split(':'))) {
    if (source.startsWith('./')) copyFileSync(join(DEPLOY, source), join(folder, basename(source)))
  }
  const child = spawn(
    'nsenter',
    [
      ...[`--net=/proc/${network}/ns/net`, 'prometheus', '--web.listen-address=127.0.0.1:9090'],
      ...[`--config.file=${join(folder, 'prometheus.yml')}`, `--storage.tsdb.path=${join(folder, 'data')}`],
    ],
    { stdio: 'ignore' },
  )
  const closed = once(child, 'close')
  closeLater(async () => {
    child.kill()
    await closed
  })
  await once(child, 'spawn')
}

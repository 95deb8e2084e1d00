import { chownSync, mkdirSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { systemClock } from '../../system/clock.ts'
import { listen } from '../../system/listen.ts'
import type { ListenAddress } from '../../system/listen-address.ts'
import { codeOf, reasonOf, SetupError } from '../../system/setup-error.ts'
import { lockStateFolder } from '../../tokens/state-folder.ts'
import { folderOf, type InstancePlaces } from '../instance.ts'
import { neighboursOf } from '../neighbour-files.ts'

/** The ports of instance number N are these plus N: 8501 for clients and 9501 for metrics of the first. */
const BELOW = { listen: 8500, admin: 9500 } as const
const MOST = 999

/** How long another `init` may take to write its file (ms). */
const PATIENCE = 10_000
/** The time between two attempts to take its lock (ms). */
const INTERVAL = 20

/** The addresses for a new instance. */
export interface InstanceAddresses {
  readonly listen: ListenAddress & { readonly kind: 'tcp' }
  readonly admin: ListenAddress & { readonly kind: 'tcp' }
}

/**
 * Makes the folder of the instances beside `postern.yaml`, unless it exists. The folder gets the group of its parent. Throws `SetupError`.
 */
export function makeFolder(places: InstancePlaces): void {
  const folder = folderOf(places)
  try {
    mkdirSync(folder, { mode: 0o750 })
    const { uid } = statSync(folder)
    if (uid === 0) chownSync(folder, uid, statSync(dirname(folder)).gid)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return
    throw new SetupError(`cannot make ${folder}: ${reasonOf(error)}`, {
      remedy: `run init as root; ${dirname(folder)} must exist`,
      cause: error,
    })
  }
}

/**
 * Calls `write` with the first pair of ports that no configuration of this host has and no program uses. Another `init` waits meanwhile, so
 * that two never get the same ports. The lock ends with the process; its empty file stays.
 *
 * @param say gets a sentence about each configuration whose ports are not known
 */
export async function withFreeAddresses<Result>(
  places: InstancePlaces,
  say: (sentence: string) => void,
  write: (addresses: InstanceAddresses) => Result,
): Promise<Result> {
  const release = await lock(join(folderOf(places), '.init.lock'))
  try {
    return write(await freeAddresses(places, say))
  } finally {
    release()
  }
}

async function lock(path: string): Promise<() => void> {
  for (let waited = 0; waited <= PATIENCE; waited += INTERVAL) {
    const release = lockStateFolder(path, 0)
    if (release !== undefined) return release
    await systemClock.pause(INTERVAL)
  }
  throw new SetupError('another postern init is choosing ports', { remedy: 'try again when it has ended' })
}

async function freeAddresses(
  places: InstancePlaces,
  say: (sentence: string) => void,
): Promise<InstanceAddresses> {
  const neighbours = neighboursOf(undefined, places)
  for (const { file, addresses } of neighbours) {
    if (addresses === undefined) say(`${file} cannot be read or has a mistake, so its ports are not known`)
  }
  const taken = new Set(
    neighbours.flatMap(({ addresses = [] }) =>
      addresses.flatMap(({ address }) => (address.kind === 'tcp' ? [address.port] : [])),
    ),
  )
  for (let number = 1; number <= MOST; number += 1) {
    const addresses: InstanceAddresses = {
      listen: { kind: 'tcp', host: '::', port: BELOW.listen + number, orIPv4: true },
      admin: { kind: 'tcp', host: '127.0.0.1', port: BELOW.admin + number },
    }
    const both = Object.values(addresses)
    if (both.some(({ port }) => taken.has(port))) continue
    if ((await Promise.all(both.map(isFree))).every((free) => free)) return addresses
  }
  throw new SetupError(
    `no pair of ports is free: all from ${BELOW.listen + 1} and ${BELOW.admin + 1} are used`,
    {
      remedy: 'write the file by hand, with listen.address and admin.address',
    },
  )
}

/** Whether no program listens at the address now. */
async function isFree(address: ListenAddress): Promise<boolean> {
  await using server = createServer((early) => early.destroy())
  try {
    await listen(server, address)
    return true
  } catch (error) {
    if (error instanceof SetupError) return false
    throw error
  }
}

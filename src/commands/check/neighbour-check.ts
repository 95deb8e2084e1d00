import { basename } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { formatAddress } from '../../system/listen-address.ts'
import { SetupError } from '../../system/setup-error.ts'
import type { Places } from '../instance.ts'
import { addressesOf, collide, isInstalled, type Neighbour, neighboursOf } from '../neighbours.ts'
import type { Check, Finding } from './finding.ts'

/** Whether another sidecar of this host has one of the addresses. Nothing to check if the file is a draft, or there is no other one. */
export function neighbourChecks(config: Config, file: string | undefined, places: Places): readonly Check[] {
  if (file === undefined || !isInstalled(file, places)) return []
  const neighbours = foundBeside(file, places)
  if (!(neighbours instanceof SetupError) && neighbours.length === 0) return []
  return [
    {
      name: 'other instances',
      key: 'listen.address',
      meaning:
        'of two sidecars with one port the second does not start, or they share the clients of two devices',
      remedy: 'give one of them another port',
      run: async () => (neighbours instanceof SetupError ? unread(neighbours) : judge(config, neighbours)),
    },
  ]
}

/** The others, or the error of a folder that cannot be read. */
function foundBeside(file: string, places: Places): readonly Neighbour[] | SetupError {
  try {
    return neighboursOf(file, places)
  } catch (error) {
    if (error instanceof SetupError) return error
    throw error
  }
}

/** The start does not read the others, so this is no failure. */
function unread({ reason, remedy }: SetupError): Finding {
  return { warning: reason, meaning: 'another sidecar may have an address of this one', remedy }
}

function judge(config: Config, neighbours: readonly Neighbour[]): Finding {
  const own = addressesOf(config)
  const shared = neighbours.flatMap(({ file, addresses = [] }) =>
    addresses.flatMap((other) =>
      own
        .filter(({ address }) => collide(address, other.address))
        .map(({ key, address }) => `${key} ${formatAddress(address)} is also ${other.key} in ${file}`),
    ),
  )
  if (shared.length > 0) return { warning: shared.join('; ') }
  const unknown = neighbours.filter(({ addresses }) => addresses === undefined).map(({ file }) => file)
  if (unknown.length > 0) {
    return {
      warning: `the addresses in ${unknown.join(', ')} are not known`,
      meaning: 'they may be those of this sidecar; the file cannot be read, or has a mistake',
      remedy: 'correct it, and run check as root or as the user of the sidecar',
    }
  }
  const names = neighbours.map(({ file }) => basename(file, '.yaml'))
  return `none has an address of this one: ${names.length > 8 ? `${names.length} files` : names.join(', ')}`
}

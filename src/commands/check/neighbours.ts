import { basename } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { formatAddress } from '../../system/listen-address.ts'
import { SetupError } from '../../system/setup-error.ts'
import type { InstancePlaces } from '../instance.ts'
import { addressesOf, collide, isInstalled, type Neighbour, neighboursOf } from '../neighbour-files.ts'
import { check } from './part.ts'

/** Whether another sidecar of this host has one of the addresses. Does not apply to a draft, or if there is no other sidecar. */
export const NEIGHBOURS = check({
  subjects({ config, file, places }) {
    if (file === undefined || !isInstalled(file, places)) return []
    const found = foundBeside(file, places)
    return found instanceof SetupError || found.length > 0 ? [{ config, found }] : []
  },
  about: () => ({
    name: 'other instances',
    key: 'listen.address',
    meaning:
      'of two sidecars with one port the second does not start, or they share the clients of two devices',
    remedy: 'give one of them another port',
  }),
  look: compare,
  rows: {
    // The start does not read the others, so this is no failure.
    unread: ({ unread }) =>
      unread !== undefined && {
        warning: unread.reason,
        meaning: 'another sidecar may have an address of this one',
        remedy: unread.remedy,
      },
    shared: ({ shared }) => shared.length > 0 && { warning: shared.join('; ') },
    unknown: ({ unknown }) =>
      unknown.length > 0 && {
        warning: `the addresses in ${unknown.join(', ')} are not known`,
        meaning: 'they may be those of this sidecar; the file cannot be read, or has a mistake',
        remedy: 'correct it, and run check as root or as the user of the sidecar',
      },
    apart({ names }) {
      const listed = names.length > 8 ? `${names.length} files` : names.join(', ')
      return `none has an address of this one: ${listed}`
    },
  },
})

type Found = readonly Neighbour[] | SetupError

/** The other sidecars, or the error if the folder cannot be read. */
function foundBeside(file: string, places: InstancePlaces): Found {
  try {
    return neighboursOf(file, places)
  } catch (error) {
    if (error instanceof SetupError) return error
    throw error
  }
}

/** `unknown`: files whose addresses cannot be read. */
function compare({ config, found }: { readonly config: Config; readonly found: Found }) {
  const others = found instanceof SetupError ? [] : found
  const own = addressesOf(config)
  const shared = others.flatMap(({ file, addresses = [] }) =>
    addresses.flatMap((other) =>
      own
        .filter(({ address }) => collide(address, other.address))
        .map(({ key, address }) => `${key} ${formatAddress(address)} is also ${other.key} in ${file}`),
    ),
  )
  const unknown = others.filter(({ addresses }) => addresses === undefined).map(({ file }) => file)
  return {
    unread: found instanceof SetupError ? found : undefined,
    shared,
    unknown,
    names: others.map(({ file }) => basename(file, '.yaml')),
  }
}

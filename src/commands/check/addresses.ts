import { createServer } from 'node:net'
import { parseAddress } from '../../config/address.ts'
import { normalizeAddress } from '../../http/ip.ts'
import { listen, mayComeLater, trySocket } from '../../system/listen.ts'
import { formatAddress, type ListenAddress } from '../../system/listen-address.ts'
import { codeOf, SetupError } from '../../system/setup-error.ts'
import { control } from '../control.ts'
import type { Status } from '../status.ts'
import { check } from './part.ts'

interface Subject {
  readonly key: string
  readonly address: ListenAddress
  readonly stateDir: string
}

/** The row of an address that the running sidecar of the same state folder uses. */
export const RUNNING = 'own'

export const ADDRESSES = check({
  subjects({ config: { listen, admin, stateDir } }) {
    const given = {
      'listen.address': listen.address,
      'listen.redirect': listen.redirect,
      'admin.address': admin.address,
    }
    return Object.entries(given).flatMap(([key, address]) =>
      address === 'off' ? [] : [{ key, address, stateDir }],
    )
  },
  about: ({ key }) => ({ name: key, key, meaning: 'serve does not start', remedy: `correct ${key}` }),
  look: lookAtAddress,
  rows: {
    creatable: ({ state, shown }) => state === 'creatable' && `${shown} can be created`,
    passed: ({ state, shown }) =>
      state === 'passed' && `descriptor ${shown}, which the service manager passes at the start`,
    [RUNNING]: ({ state, shown, subject: { stateDir } }) =>
      state === 'own' && `${shown} is in use by the running Postern of ${stateDir}, as it should be`,
    hidden: ({ state, shown }) =>
      state === 'hidden' && {
        warning: `${shown} is in use, and only root and the user of the sidecar can see by whom`,
        meaning: 'this is right if it is the running Postern; otherwise serve does not start',
        remedy: "run check as root or as the sidecar's user",
      },
    absent: ({ state, subject: { key } }) => {
      if (typeof state === 'string') return undefined
      const clients =
        key === 'admin.address' ? 'no program can ask the sidecar there' : 'no client can connect'
      return {
        failed: state.reason,
        meaning: `serve waits until it has the address, and ${clients} meanwhile`,
        remedy: state.remedy,
      }
    },
    free: ({ shown }) => `${shown} is free`,
  },
})

/**
 * The state of an address. `own`: the sidecar on this `state_dir` uses it. `hidden`: it is in use, and only root and the user of the
 * sidecar can see by which program. An error: this machine does not have the address yet.
 */
async function lookAtAddress(subject: Subject) {
  const { key, address, stateDir } = subject
  const shown = formatAddress(address)
  try {
    switch (address.kind) {
      case 'tcp':
        return { subject, state: 'free', shown: await tryPort(key, address) }
      case 'unix':
        await trySocket(address, key)
        return { subject, state: 'creatable', shown: address.path }
      case 'fd':
        return { subject, state: 'passed', shown: String(address.fd) }
    }
  } catch (error) {
    if (mayComeLater(error, address)) return { subject, state: error, shown }
    if (!(error instanceof SetupError) || codeOf(error.cause) !== 'EADDRINUSE') throw error
    return { subject, state: await userOf(address, stateDir, error), shown }
  }
}

/** Listens for a moment, because only the kernel knows whether that is possible. Resolves with the bound address. */
async function tryPort(key: string, address: TcpAddress): Promise<string> {
  await using server = createServer((early) => early.destroy())
  return await listen(server, address, key)
}

type TcpAddress = Extract<ListenAddress, { kind: 'tcp' }>

/** The user of an address that is in use: see `lookAtAddress`. Rejects with `taken` if another program uses it. */
async function userOf(
  address: ListenAddress,
  stateDir: string,
  taken: SetupError,
): Promise<'own' | 'hidden'> {
  try {
    const { listening } = await control<Status>(stateDir, { method: 'GET', path: '/status' })
    if (listening?.some((each) => isSameAddress(each, address))) return 'own'
  } catch (error) {
    if (error instanceof SetupError && codeOf(error.cause) === 'EACCES') return 'hidden'
    if (!(error instanceof SetupError)) throw error
  }
  throw taken
}

/** Compares the hosts only if both are addresses: the configuration may have a name or a wildcard. */
function isSameAddress(bound: string, address: ListenAddress): boolean {
  if (address.kind !== 'tcp') return bound === formatAddress(address)
  const running = parseAddress(bound)
  if (!('value' in running) || running.value.kind !== 'tcp') return false
  const hosts = [running.value.host, address.host].map(normalizeAddress)
  const comparable = hosts.every((host) => host !== undefined && !WILDCARDS.includes(host))
  return running.value.port === address.port && (!comparable || hosts[0] === hosts[1])
}

const WILDCARDS = ['0.0.0.0', '::']

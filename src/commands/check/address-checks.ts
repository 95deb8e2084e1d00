import { createServer } from 'node:net'
import { parseAddress } from '../../config/address.ts'
import type { Config } from '../../config/schema.ts'
import { normalizeAddress } from '../../http/ip.ts'
import { listen, mayComeLater, trySharedPort, trySocket } from '../../system/listen.ts'
import { formatAddress, type ListenAddress } from '../../system/listen-address.ts'
import { codeOf, SetupError } from '../../system/setup-error.ts'
import { control } from '../control.ts'
import type { Status } from '../status.ts'
import { type Check, CheckFailure, type Finding } from './finding.ts'

export function addressChecks({ listen, admin, stateDir }: Config): readonly Check[] {
  const addresses = { 'listen.address': listen.address, 'admin.address': admin.address }
  const shared = listen.reusePort ? 'listen.address' : undefined
  return Object.entries(addresses).flatMap(([key, address]) =>
    address === 'off'
      ? []
      : [
          {
            name: key,
            key,
            meaning: 'serve does not start',
            remedy: `correct ${key}`,
            run: () => checkAddress(key, address, { stateDir, reusePort: key === shared }),
          },
        ],
  )
}

async function checkAddress(
  key: string,
  address: ListenAddress,
  { stateDir, reusePort }: { readonly stateDir: string; readonly reusePort: boolean },
): Promise<Finding> {
  try {
    switch (address.kind) {
      case 'tcp':
        return reusePort ? await judgeShared(key, address) : await tryPort(key, address)
      case 'unix':
        await trySocket(address, key)
        return `${address.path} can be created`
      case 'fd':
        return `descriptor ${address.fd}, which the service manager passes at the start`
    }
  } catch (error) {
    if (mayComeLater(error, address)) throw notYet(key, error)
    if (!(error instanceof SetupError) || codeOf(error.cause) !== 'EADDRINUSE') throw error
    return judgeTaken(address, stateDir, error)
  }
}

/** The finding about an address that this machine does not have yet: `serve` waits for it. */
function notYet(key: string, { reason, remedy }: SetupError): CheckFailure {
  const clients = key === 'listen.address' ? 'no client can connect' : 'no program can ask the sidecar there'
  return new CheckFailure(reason, {
    meaning: `serve waits until it has the address, and ${clients} meanwhile`,
    remedy,
  })
}

/** Listens for a moment, because only the kernel knows whether it is possible. */
async function tryPort(key: string, address: ListenAddress): Promise<string> {
  const server = createServer((early) => early.destroy())
  try {
    return `${await listen(server, address, key)} is free`
  } finally {
    server.close()
  }
}

type TcpAddress = Extract<ListenAddress, { kind: 'tcp' }>

async function judgeShared(key: string, address: TcpAddress): Promise<string> {
  const shown = formatAddress(address)
  switch (await trySharedPort(address, key)) {
    case 'free':
      return `${shown} is free`
    case 'shared':
      return `${shown} is shared with programs of the same user, as listen.reuse_port permits`
    case 'untried':
      return `${shown}, which this version of Node.js cannot try without taking connections from sidecars that share it`
  }
}

/** An address in use is ok if the sidecar on this `state_dir` uses it. */
async function judgeTaken(address: ListenAddress, stateDir: string, taken: SetupError): Promise<Finding> {
  const shown = formatAddress(address)
  try {
    const { listening } = await control<Status>(stateDir, { method: 'GET', path: '/status' })
    if (listening?.some((each) => isSame(each, address))) {
      return `${shown} is in use by the running Postern of ${stateDir}, as it should be`
    }
  } catch (error) {
    if (error instanceof SetupError && codeOf(error.cause) === 'EACCES') {
      return {
        warning: `${shown} is in use, and only root and the user of the sidecar can see by whom`,
        meaning: 'this is right if it is the running Postern; otherwise serve does not start',
        remedy: "run check as root or as the sidecar's user",
      }
    }
    if (!(error instanceof SetupError)) throw error
  }
  throw taken
}

/** Compares the hosts only if both are addresses: the configuration may have a name or a wildcard. */
function isSame(bound: string, address: ListenAddress): boolean {
  if (address.kind !== 'tcp') return bound === formatAddress(address)
  const running = parseAddress(bound)
  if (!('value' in running) || running.value.kind !== 'tcp') return false
  const hosts = [running.value.host, address.host].map(normalizeAddress)
  const comparable = hosts.every((host) => host !== undefined && !WILDCARDS.includes(host))
  return running.value.port === address.port && (!comparable || hosts[0] === hosts[1])
}

const WILDCARDS = ['0.0.0.0', '::']

import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { dirname } from 'node:path'
import { type Address, formatAddress } from '../../config/address.ts'
import type { Config } from '../../config/schema.ts'
import { listen } from '../../system/listen.ts'
import { codeOf, SetupError } from '../../system/setup-error.ts'
import { control, type Status } from '../control.ts'
import { type Check, CheckFailure, type Finding } from './finding.ts'

/** Tries the addresses of both listeners. */
export function addressChecks({ listen, admin, stateDir }: Config): readonly Check[] {
  const addresses = { 'listen.address': listen.address, 'admin.address': admin.address }
  return Object.entries(addresses).flatMap(([key, address]) =>
    address === 'off'
      ? []
      : [
          {
            name: key,
            meaning: 'serve does not start',
            remedy: `correct ${key}`,
            run: () => checkAddress(key, address, stateDir),
          },
        ],
  )
}

async function checkAddress(key: string, address: Address, stateDir: string): Promise<Finding> {
  switch (address.kind) {
    case 'tcp':
      return checkPort(key, address, stateDir)
    case 'unix':
      return checkSocket(key, address, stateDir)
    case 'fd':
      return `descriptor ${address.fd}, which the service manager passes at the start`
  }
}

/** Listens for a moment, because only the kernel knows whether it is possible. */
async function checkPort(key: string, address: Address, stateDir: string): Promise<Finding> {
  const server = createServer((early) => early.destroy())
  try {
    const bound = await listen(server, address, key)
    return `${bound} is free`
  } catch (error) {
    if (!(error instanceof SetupError) || codeOf(error.cause) !== 'EADDRINUSE') throw error
    return whoUses(address, stateDir, error)
  } finally {
    server.close()
  }
}

/**
 * Checks whether a Unix socket can be created at a path, without creating it: that would remove the one of a running program. The
 * folder has to exist, because a start does not create it.
 */
async function checkSocket(
  key: string,
  address: Extract<Address, { kind: 'unix' }>,
  stateDir: string,
): Promise<Finding> {
  const { path } = address
  await access(dirname(path), constants.W_OK | constants.X_OK)
  const found = await stat(path).catch(() => undefined)
  if (found === undefined) return `${path} can be created`
  if (!found.isSocket()) {
    throw new CheckFailure(`${path} exists and is not a socket`, {
      remedy: `move it away, or correct ${key}`,
    })
  }
  if (!(await accepts(path))) return `${path} can be created`
  const remedy = `ss -lxp src ${path} shows the program: stop it, or use another path`
  return whoUses(address, stateDir, new CheckFailure(`${path} is in use by another program`, { remedy }))
}

function accepts(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path)
    probe.once('connect', () => {
      probe.destroy()
      resolve(true)
    })
    probe.once('error', () => resolve(false))
  })
}

/** An address in use is fine if the sidecar that runs on the same `state_dir` uses it: this is the one to be checked. */
async function whoUses(address: Address, stateDir: string, taken: Error): Promise<Finding> {
  const shown = formatAddress(address)
  try {
    // Proof of the cast: the same program wrote the response.
    const { listening } = (await control(stateDir, { method: 'GET', path: '/status' })) as Status
    if (listening?.some((each) => isSame(each, address))) {
      return `${shown} is in use by the running Postern of ${stateDir}, as it should be`
    }
  } catch (error) {
    if (error instanceof SetupError && codeOf(error.cause) === 'EACCES') {
      return {
        warning: `${shown} is in use, and only root and the user of the sidecar can see by whom`,
        meaning: 'this is right if it is the running Postern; otherwise serve does not start',
        remedy: 'run check as one of them',
      }
    }
    if (!(error instanceof SetupError)) throw error
  }
  throw taken
}

/** Compares ports only: the configuration may have a host name, and the running sidecar its address. */
function isSame(bound: string, address: Address): boolean {
  return address.kind === 'tcp' ? bound.endsWith(`:${address.port}`) : bound === formatAddress(address)
}

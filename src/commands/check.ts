import { constants, existsSync } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { controlSocketPath } from '../admin/control-socket.ts'
import { socketLengthProblem } from '../config/address.ts'
import type { Config } from '../config/schema.ts'
import { effectiveYaml, exposedSecrets } from '../config/secrets.ts'
import { type ServiceConfig, servicesOf } from '../config/upstream-fields.ts'
import { createConnections } from '../device/connections.ts'
import { probeDevice } from '../device/own-request.ts'
import { readRequestFields, upstreamDeadlines, upstreamTarget } from '../forward/settings.ts'
import { findSelfSigned, isSelfSigned, readPair, selfSignedPaths } from '../listen/tls-material.ts'
import { describeValidity, validityOf } from '../listen/validity.ts'
import { openPasswordSource } from '../password/source.ts'
import { openSignIn } from '../sign-in/settings.ts'
import { systemClock } from '../system/clock.ts'
import { reasonOf } from '../system/node-permission.ts'
import { isBug, SetupError } from '../system/setup-error.ts'
import { type CommandIo, type ExitCode, exitCodeOf } from './command.ts'
import { type ConfigOptions, configFrom } from './configuration.ts'

/** The result of a check: it passed, or it passed with a `warning` because the operator has to act soon. */
type Finding = string | { readonly warning: string }

interface Check {
  readonly what: string
  readonly run: () => Promise<Finding>
}

/**
 * Prints the effective configuration with masked secrets. Then checks the password source, the certificate, the folders that are
 * written to, the header files and the device. Exit code 0 if all checks pass, with or without warnings; 2 if `serve` would
 * not start; 1 if only other checks fail.
 */
export async function checkCommand(options: ConfigOptions, io: CommandIo): Promise<ExitCode> {
  const config = configFrom(options, io)
  io.stdout.write(`${effectiveYaml(config)}\n`)
  let worst: ExitCode = 0
  for (const { what, run } of checksOf(config)) {
    try {
      const found = await run()
      const line =
        typeof found === 'string' ? `ok      ${what}: ${found}` : `WARNING ${what}: ${found.warning}`
      io.stdout.write(`${line}\n`)
    } catch (error) {
      if (isBug(error)) throw error
      worst = worst === 2 ? 2 : exitCodeOf(error)
      io.stdout.write(`FAILED  ${what}: ${reasonOf(error)}\n`)
    }
  }
  for (const { key, file, reason } of await exposedSecrets(config)) {
    io.stdout.write(`WARNING ${key}: ${file}: ${reason}\n`)
  }
  return worst
}

function checksOf(config: Config): readonly Check[] {
  return [
    { what: 'password source', run: () => checkPassword(config) },
    { what: 'certificate', run: () => checkCertificate(config) },
    { what: 'state_dir', run: () => checkStateFolder(config) },
    ...socketsOf(config).map(({ key, path }) => ({ what: key, run: () => checkSocketFolder(path) })),
    ...servicesOf(config.upstream).flatMap(({ path, service }) => serviceChecks(path, service, config)),
  ]
}

function socketsOf({ listen, admin }: Config): readonly { readonly key: string; readonly path: string }[] {
  const addresses = { 'listen.address': listen.address, 'admin.address': admin.address }
  return Object.entries(addresses).flatMap(([key, address]) =>
    address !== 'off' && address.kind === 'unix' ? [{ key, path: address.path }] : [],
  )
}

function serviceChecks(
  path: readonly string[],
  service: ServiceConfig,
  { upstream, password }: Config,
): readonly Check[] {
  const key = path.join('.')
  const [, , route] = path
  const of = route === undefined ? '' : ` of ${route}`
  const byGrant = service === upstream && 'device' in password
  return [
    { what: `upstream headers${of}`, run: () => checkHeaders(service, key) },
    { what: `device${of}`, run: () => checkDevice(service, key) },
    {
      what: `signing in${of}`,
      run: () =>
        byGrant
          ? Promise.resolve('with the password of the last password grant, once there is one')
          : checkSignIn(service, key),
    },
  ]
}

async function checkPassword({ password }: Config): Promise<string> {
  if ('device' in password) return 'the device, which checks the password of every grant'
  const source = await openPasswordSource(password, {
    clock: systemClock,
    events: { changed() {}, unreadable() {}, restored() {} },
  })
  source.close()
  return 'readable'
}

/** Creates no pair: a check writes nothing. */
async function checkCertificate({ listen: { tls }, stateDir }: Config): Promise<Finding> {
  if (tls === 'off') return 'off, the listener uses cleartext'
  const { cert } = isSelfSigned(tls) ? selfSignedPaths(stateDir) : tls
  const found = isSelfSigned(tls) ? await findSelfSigned(stateDir) : await readPair(tls)
  if (found === 'missing') return `self-signed, created at the first start in ${cert}`
  if ('broken' in found) {
    return { warning: `${found.broken}; a start sets this self-signed pair aside and makes another` }
  }
  const wall = systemClock.wall()
  const sentence = describeValidity(found.valid, wall)
  const validity = validityOf(found.valid, wall)
  if (validity === 'expiring') return { warning: sentence }
  if (validity !== 'valid') throw new Error(sentence)
  return isSelfSigned(tls) ? `self-signed, in ${cert}` : `${cert} matches its key`
}

async function checkHeaders(service: ServiceConfig, key: string): Promise<string> {
  const { added } = await readRequestFields(service, key)
  return added.length === 0 ? 'none' : `${added.length / 2} set on every request`
}

async function checkDevice(service: ServiceConfig, key: string): Promise<string> {
  const target = await upstreamTarget(service, key)
  const { status } = await probeDevice(
    target,
    upstreamDeadlines(service),
    service.health.path ?? '/',
    systemClock,
  )
  return `${target.socketPath ?? target.origin} answered ${status}`
}

async function checkSignIn(service: ServiceConfig, key: string): Promise<string> {
  const connections = createConnections(
    await upstreamTarget(service, key),
    upstreamDeadlines(service),
    systemClock,
  )
  let outcome = 'off'
  let failed = false
  try {
    const request = await readRequestFields(service, key)
    const signIn = await openSignIn(service.auth, {
      key: `${key}.auth`,
      connections,
      request: () => request,
      clock: systemClock,
      events: {
        signedIn() {
          outcome = 'the device accepts the credentials'
        },
        refused() {
          failed = true
          outcome = 'the device refuses these credentials'
        },
        unusable(reason) {
          failed = true
          outcome = reason
        },
      },
    })
    const failure = await signIn?.ready()
    if (failure !== undefined) throw new Error(`the device did not respond (${failure})`)
    if (failed) throw new Error(outcome)
    return outcome
  } finally {
    await connections.close()
  }
}

/**
 * Checks whether the state folder is usable. Fails with `SetupError` if a start would fail too, because it has to write a
 * self-signed pair there; otherwise with another error: without its token file the sidecar still runs, from memory.
 */
async function checkStateFolder({ listen, stateDir }: Config): Promise<string> {
  const found = await checkFolder(resolve(stateDir)).catch(async (error: unknown) => {
    if (isBug(error) || !isSelfSigned(listen.tls) || !(await needsNewPair(stateDir))) throw error
    throw new SetupError(reasonOf(error), { cause: error })
  })
  const socket = controlSocketPath(stateDir)
  const tooLong = socketLengthProblem(socket)
  if (tooLong !== undefined) throw new Error(`status and revoke will not work: ${socket} ${tooLong}`)
  return found
}

/** Whether a start has to write a self-signed pair, because it is missing or broken. */
async function needsNewPair(stateDir: string): Promise<boolean> {
  const found = await findSelfSigned(stateDir)
  return found === 'missing' || 'broken' in found
}

/** Checks whether a Unix socket can be created at a path. Its folder has to exist, because a start does not create it. */
async function checkSocketFolder(path: string): Promise<string> {
  await access(dirname(path), constants.W_OK | constants.X_OK)
  const found = await stat(path).catch(() => undefined)
  if (found !== undefined && !found.isSocket()) throw new Error(`${path} exists and is not a socket`)
  return `${path} can be created`
}

/** Checks whether files can be created in a folder, without creating any. A start creates a missing folder. */
async function checkFolder(folder: string): Promise<string> {
  let present = folder
  while (!existsSync(present) && present !== dirname(present)) present = dirname(present)
  if (!(await stat(present)).isDirectory()) throw new Error(`${present} is not a folder`)
  await access(present, constants.W_OK | constants.X_OK)
  return present === folder ? `${folder} is writable` : `${folder} is created at the first start`
}

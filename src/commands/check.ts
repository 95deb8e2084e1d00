import type { Config } from '../config/schema.ts'
import { effectiveYaml, exposedSecrets } from '../config/secrets.ts'
import { type ServiceConfig, servicesOf } from '../config/upstream-fields.ts'
import { createConnections } from '../device/connections.ts'
import { probeDevice } from '../device/own-request.ts'
import { readRequestFields } from '../forward/added-fields.ts'
import { upstreamDeadlines, upstreamTarget } from '../forward/settings.ts'
import { findSelfSigned, readPair, selfSignedPaths } from '../listen/tls-material.ts'
import { describeValidity, validityOf } from '../listen/validity.ts'
import { openPasswordSource } from '../password/source.ts'
import { openSignIn } from '../sign-in/settings.ts'
import { systemClock } from '../system/clock.ts'
import { reasonOf } from '../system/node-permission.ts'
import { isBug } from '../system/setup-error.ts'
import { trySocketFolder, tryStateFolder } from './check-folders.ts'
import { exitCodeOf } from './failure.ts'
import type { CommandIo, ExitCode } from './io.ts'
import { type ConfigOptions, configFrom } from './serve.ts'

/** What a trial found: something works, or works with a `warning` because it needs the operator soon. */
type Finding = string | { readonly warning: string }

interface Trial {
  readonly what: string
  readonly run: () => Promise<Finding>
}

/**
 * Prints the configuration as it will be used, secrets masked, then tries what it names: the password source, the
 * certificate, the folders that are written to, the header files and the device. Exit code 0 when all of it works,
 * warnings included; 2 when `serve` would not start; 1 when only something else fails.
 */
export async function checkCommand(options: ConfigOptions, io: CommandIo): Promise<ExitCode> {
  const config = configFrom(options, io)
  io.stdout.write(`${effectiveYaml(config)}\n`)
  let worst: ExitCode = 0
  for (const { what, run } of trialsOf(config)) {
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

function trialsOf(config: Config): readonly Trial[] {
  return [
    { what: 'password source', run: () => tryPassword(config) },
    { what: 'certificate', run: () => tryCertificate(config) },
    { what: 'state_dir', run: () => tryStateFolder(config) },
    ...socketsOf(config).map(({ key, path }) => ({ what: key, run: () => trySocketFolder(path) })),
    ...servicesOf(config.upstream).flatMap(({ path, service }) => trialsOfService(path, service, config)),
  ]
}

function socketsOf({ listen, admin }: Config): readonly { readonly key: string; readonly path: string }[] {
  const addresses = { 'listen.address': listen.address, 'admin.address': admin.address }
  return Object.entries(addresses).flatMap(([key, address]) =>
    address !== 'off' && address.kind === 'unix' ? [{ key, path: address.path }] : [],
  )
}

function trialsOfService(
  path: readonly string[],
  service: ServiceConfig,
  { upstream, password }: Config,
): readonly Trial[] {
  const key = path.join('.')
  const [, , route] = path
  const of = route === undefined ? '' : ` of ${route}`
  const byGrant = service === upstream && 'device' in password
  return [
    { what: `upstream headers${of}`, run: () => tryHeaders(service, key) },
    { what: `device${of}`, run: () => tryDevice(service, key) },
    {
      what: `signing in${of}`,
      run: () =>
        byGrant
          ? Promise.resolve('with the password of the last grant, once there is one')
          : trySignIn(service, key),
    },
  ]
}

async function tryPassword({ password }: Config): Promise<string> {
  if ('device' in password) return 'the device, which is asked with every grant'
  const source = await openPasswordSource(password, {
    clock: systemClock,
    events: { changed() {}, unreadable() {}, restored() {} },
  })
  source.close()
  return 'readable'
}

/** Never makes one: a check leaves nothing behind. */
async function tryCertificate({ listen: { tls }, stateDir }: Config): Promise<Finding> {
  if (tls === 'off') return 'off, the listener speaks cleartext'
  const { cert } = tls === 'auto' ? selfSignedPaths(stateDir) : tls
  const found = tls === 'auto' ? await findSelfSigned(stateDir) : await readPair(tls)
  if (found === 'missing') return `self-signed, made at first start in ${cert}`
  if ('broken' in found) {
    return { warning: `${found.broken}; a start sets this self-signed pair aside and makes another` }
  }
  const wall = systemClock.wall()
  const sentence = describeValidity(found.valid, wall)
  const validity = validityOf(found.valid, wall)
  if (validity === 'expiring') return { warning: sentence }
  if (validity !== 'valid') throw new Error(sentence)
  return tls === 'auto' ? `self-signed, in ${cert}` : `${cert} and its key are a pair`
}

async function tryHeaders(service: ServiceConfig, key: string): Promise<string> {
  const { added } = await readRequestFields(service, key)
  return added.length === 0 ? 'none' : `${added.length / 2} set on every request`
}

async function tryDevice(service: ServiceConfig, key: string): Promise<string> {
  const target = await upstreamTarget(service, key)
  const status = await probeDevice(
    target,
    upstreamDeadlines(service),
    service.health.path ?? '/',
    systemClock,
  )
  return `${target.socketPath ?? target.origin} answered ${status}`
}

async function trySignIn(service: ServiceConfig, key: string): Promise<string> {
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
          outcome = 'the device takes the credentials'
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
    if (failure !== undefined) throw new Error(`the device gave no answer (${failure})`)
    if (failed) throw new Error(outcome)
    return outcome
  } finally {
    await connections.close()
  }
}

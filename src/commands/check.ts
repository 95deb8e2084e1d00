import type { Config } from '../config/config.ts'
import { effectiveYaml } from '../config/effective.ts'
import { systemClock } from '../http/system-clock.ts'
import { loadTlsMaterial, selfSignedPaths } from '../listen/tls-material.ts'
import { openPasswordSource } from '../password/source.ts'
import { readAddedFields } from '../upstream/added-fields.ts'
import { createConnections } from '../upstream/connections.ts'
import { probeDevice } from '../upstream/probe.ts'
import { upstreamDeadlines, upstreamHost, upstreamTarget } from '../upstream/settings.ts'
import { openSignIn } from '../upstream/sign-in/settings.ts'
import type { CommandIo, ExitCode } from './io.ts'
import { type ConfigOptions, configFrom } from './serve.ts'
import { reportFailure } from './setup-error.ts'

interface Trial {
  readonly what: string
  readonly run: () => Promise<string>
}

/**
 * Prints the configuration as it will be used, secrets masked, then tries what it names: the password source, the
 * certificate, the header files and the device. 0 when all of it works, 1 when something does not.
 */
export async function checkCommand(options: ConfigOptions, io: CommandIo): Promise<ExitCode> {
  let config: Config
  try {
    config = configFrom(options, io)
  } catch (error) {
    reportFailure('check', error, io)
    return 1
  }
  io.stdout.write(`${effectiveYaml(config)}\n`)
  let failed = false
  for (const { what, run } of trialsOf(config)) {
    try {
      io.stdout.write(`ok      ${what}: ${await run()}\n`)
    } catch (error) {
      failed = true
      io.stdout.write(`FAILED  ${what}: ${error instanceof Error ? error.message : String(error)}\n`)
    }
  }
  return failed ? 1 : 0
}

function trialsOf(config: Config): readonly Trial[] {
  return [
    { what: 'password source', run: () => tryPassword(config) },
    { what: 'certificate', run: () => tryCertificate(config) },
    { what: 'upstream headers', run: () => tryHeaders(config) },
    { what: 'device', run: () => tryDevice(config) },
    { what: 'signing in', run: () => trySignIn(config) },
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
async function tryCertificate({ listen, stateDir }: Config): Promise<string> {
  if (listen.tls === 'off') return 'off, the listener speaks cleartext'
  if (listen.tls !== 'auto') {
    await loadTlsMaterial(listen.tls, stateDir)
    return `${listen.tls.cert} and its key are a pair`
  }
  const { cert, key } = selfSignedPaths(stateDir)
  const present = await loadTlsMaterial({ cert, key }, stateDir).catch(() => undefined)
  return present === undefined ? `self-signed, made at first start in ${cert}` : `self-signed, in ${cert}`
}

async function tryHeaders({ upstream }: Config): Promise<string> {
  const fields = await readAddedFields(upstream.headers)
  return fields.length === 0 ? 'none' : `${fields.length / 2} set on every request`
}

async function tryDevice(config: Config): Promise<string> {
  const target = await upstreamTarget(config.upstream)
  const status = await probeDevice(
    target,
    upstreamDeadlines(config.upstream),
    config.upstream.health.path ?? '/',
  )
  return `${target.socketPath ?? target.origin} answered ${status}`
}

async function trySignIn({ upstream, password }: Config): Promise<string> {
  if ('device' in password) return 'with the password of the last grant, once there is one'
  const connections = createConnections(await upstreamTarget(upstream), upstreamDeadlines(upstream))
  let outcome = 'off'
  let failed = false
  try {
    const added = await readAddedFields(upstream.headers)
    const signIn = await openSignIn(upstream.auth, {
      connections,
      request: () => ({ host: upstreamHost(upstream), added }),
      clock: systemClock,
      events: {
        signedIn() {
          outcome = 'the device takes the credentials'
        },
        refused() {
          failed = true
          outcome = 'the device refuses the credentials of upstream.auth'
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

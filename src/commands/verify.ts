import { type FileHandle, open } from 'node:fs/promises'
import { systemClock } from '../system/clock.ts'
import { reasonOf } from '../system/node-permission.ts'
import { SetupError } from '../system/setup-error.ts'
import type { VerifyOptions } from '../verify/options.ts'
import { planJson, reportJson } from '../verify/report/json.ts'
import { junitError, junitXml } from '../verify/report/junit.ts'
import { displayOf, type Output, printable } from '../verify/report/style.ts'
import { textReporter } from '../verify/report/text-reporter.ts'
import { timed } from '../verify/report/times.ts'
import { planOf, verify } from '../verify/verify.ts'
import type { CommandIo, DaemonIo, ExitCode } from './command.ts'
import { exposureWarning } from './verify/plain-password.ts'
import { isLoopback } from './verify/server-address.ts'
import { type VerifyFlags, verifyOptionsOf } from './verify/verify-options.ts'

export interface VerifyCommandFlags extends VerifyFlags {
  /** Print one JSON document on standard output, and the text on standard error. */
  readonly json?: boolean
  /** The file for JUnit's XML. */
  readonly junit?: string
  /** Only say what a run would do. */
  readonly dryRun?: boolean
}

export interface VerifyIo extends CommandIo, Pick<DaemonIo, 'onStop'> {
  readonly stdout: CommandIo['stdout'] & Output
  readonly stderr: CommandIo['stderr'] & Output
}

/** The checks. A test can give others. */
export interface Checks {
  readonly planOf: typeof planOf
  readonly verify: typeof verify
}

/**
 * Checks the documented API of the server at `url` from outside, and reports each promise. Resolves to 0 if none is broken, and to
 * 1 if one is. Rejects with a `SetupError`: exit code 2 for a bad flag or file, before the first request; 1 if the server cannot be
 * reached or trusted, or if the run is stopped.
 */
export async function verifyCommand(
  url: string,
  flags: VerifyCommandFlags,
  io: VerifyIo,
  checks: Checks = { planOf, verify },
): Promise<ExitCode> {
  const options = await verifyOptionsOf(url, flags)
  const text = flags.json === true ? io.stderr : io.stdout
  const shown = textReporter((line) => text.write(line), displayOf(text, io.env))
  if (flags.dryRun === true) {
    const plan = checks.planOf(options)
    if (flags.json === true) io.stdout.write(planJson(plan))
    else shown.announce(plan)
    return 0
  }
  const file = flags.junit === undefined ? undefined : await openJunitFile(flags.junit)
  try {
    for (const warning of await warningsOf(options, flags)) io.stderr.write(`WARNING ${warning}\n`)
    const { reporter, times } = timed(shown, systemClock)
    const stop = stopOnSignal(io)
    const report = await Promise.race([
      checks.verify(options, reporter, systemClock, stop.signal),
      stop.atOnce,
    ])
    if (flags.json === true) io.stdout.write(reportJson(report))
    await file?.writeFile(junitXml(report, times))
    return report.result === 'broken' ? 1 : 0
  } catch (error) {
    await file?.writeFile(junitError(error instanceof SetupError ? error.problems : [reasonOf(error)]))
    throw error instanceof SetupError ? shownAsText(error) : error
  } finally {
    await file?.close()
  }
}

/** The error with problems that cannot rewrite the screen: they may quote the server. */
function shownAsText(error: SetupError): SetupError {
  return new SetupError(error.problems.map(printable), { exitCode: error.exitCode, cause: error })
}

/** Opened before the run, so that a wrong path costs none. */
async function openJunitFile(path: string): Promise<FileHandle> {
  return open(path, 'w').catch((error: unknown) => {
    throw new SetupError(`--junit: cannot write ${path}: ${reasonOf(error)}`, {
      remedy: 'name a file in a folder that exists and is yours',
      cause: error,
    })
  })
}

async function warningsOf(
  { url, tls }: VerifyOptions,
  { passwordFile = '' }: VerifyFlags,
): Promise<readonly string[]> {
  const exposure = await exposureWarning(passwordFile)
  const remote = !isLoopback(url)
  return [
    ...(exposure === undefined ? [] : [exposure]),
    ...(remote && url.protocol === 'http:'
      ? [`the password and the tokens travel to ${url.host} unencrypted`]
      : []),
    ...(remote && tls.insecure ? [`--insecure: whoever answers for ${url.host} gets the password`] : []),
  ]
}

interface Stop {
  /** Aborted by the first signal: the run revokes its tokens and then rejects with the reason, a `SetupError` with exit code 1. */
  readonly signal: AbortSignal
  /** Rejects with it at the second signal. */
  readonly atOnce: Promise<never>
}

function stopOnSignal({ onStop, stderr }: VerifyIo): Stop {
  const stop = new AbortController()
  const atOnce = new Promise<never>((_resolve, reject) => {
    onStop(() => {
      if (stop.signal.aborted) return reject(stop.signal.reason)
      stderr.write(
        '\npostern verify: stopping; a second signal stops without revoking the tokens of the run\n',
      )
      const stopped = 'the run was stopped before its end, so not every promise was checked'
      stop.abort(new SetupError(stopped, { exitCode: 1 }))
    })
  })
  return { signal: stop.signal, atOnce }
}

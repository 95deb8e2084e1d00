import { isLoopback } from '../http/ip.ts'
import { systemClock } from '../system/clock.ts'
import { SetupError } from '../system/setup-error.ts'
import { addressOf } from '../verify/client.ts'
import { timeOn } from '../verify/conversation.ts'
import type { VerifyOptions } from '../verify/options.ts'
import { mayColour, planJson, reportJson, textReporter, visible } from '../verify/report.ts'
import { planOf, verify } from '../verify/run.ts'
import { columnsOf, wrapped } from './columns.ts'
import type { CommandIo, DaemonIo, ExitCode } from './command.ts'
import { exposureWarning } from './exposed-file.ts'
import { lostReason, type Outputs } from './output.ts'
import { type VerifyFlags, verifyOptionsOf } from './verify/verify-options.ts'

export interface VerifyCommandFlags extends VerifyFlags {
  readonly json?: boolean
  /** Only say what a run would do. */
  readonly dryRun?: boolean
}

interface VerifyIo extends CommandIo, Pick<DaemonIo, 'onStop'>, Pick<Outputs, 'onLostOutput'> {}

/** The checks. A test passes others. */
export interface Checks {
  readonly planOf: typeof planOf
  readonly verify: typeof verify
}

/**
 * Checks the documented API of the server at `url` from outside, and reports each promise. Resolves to 0 if none is broken, and to
 * 1 if one is. Rejects with a `SetupError`: exit code 2 for a bad flag or file, before the first request; 1 if the server cannot be
 * reached or trusted, does not accept the password, if the run is stopped, or if its output cannot be written.
 */
export async function verifyCommand(
  url: string,
  flags: VerifyCommandFlags,
  io: VerifyIo,
  checks: Checks = { planOf, verify },
): Promise<ExitCode> {
  const options = await verifyOptionsOf(url, flags)
  const text = flags.json === true ? io.stderr : io.stdout
  const shown = textReporter((line) => text.write(line), {
    colour: mayColour(text.isTTY === true, io.env),
    wrap: (line, indent) => wrapped(line, indent, columnsOf(text)),
  })
  for (const warning of await targetWarnings(options, flags))
    io.stderr.write(`WARNING ${wrapped(warning, 8, columnsOf(io.stderr))}\n`)
  if (flags.dryRun === true) {
    const plan = checks.planOf(options)
    if (flags.json === true) io.stdout.write(planJson(plan))
    else shown.announce(plan)
    return 0
  }
  const stop = stopOnSignal(io)
  const run = checks.verify(options, shown, timeOn(systemClock), stop.signal)
  const report = await Promise.race([run, stop.atOnce]).catch((error: unknown) => {
    throw shownAsText(error)
  })
  if (flags.json === true) io.stdout.write(reportJson(report))
  return report.result === 'broken' ? 1 : 0
}

/** Makes the problems of an error printable: they may quote the server, and must not control the terminal. */
function shownAsText(error: unknown): unknown {
  if (!(error instanceof SetupError)) return error
  return new SetupError(error.problems.map(visible), { exitCode: error.exitCode, cause: error })
}

async function targetWarnings(
  { url, tls }: VerifyOptions,
  { passwordFile = '' }: VerifyFlags,
): Promise<readonly string[]> {
  const exposure = await exposureWarning('--password-file', passwordFile)
  const remote = !isLoopback(addressOf(url).host)
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
  /** Rejects with the same reason at the second signal. */
  readonly atOnce: Promise<never>
}

function stopOnSignal({ onStop, onLostOutput, stderr }: VerifyIo): Stop {
  const stop = new AbortController()
  const atOnce = new Promise<never>((_resolve, reject) => {
    onStop(() => {
      if (stop.signal.aborted) return reject(stop.signal.reason)
      const stopping =
        'postern verify: stopping; a second signal stops without revoking the tokens of the run'
      stderr.write(`\n${wrapped(stopping, 0, columnsOf(stderr))}\n`)
      const stopped = 'the run was stopped before its end, so not every promise was checked'
      stop.abort(new SetupError(stopped, { exitCode: 1 }))
    })
  })
  // A closed terminal causes a signal and lost output: together they must not count as two signals.
  onLostOutput((error) => stop.abort(new SetupError(lostReason(error), { exitCode: 1 })))
  return { signal: stop.signal, atOnce }
}

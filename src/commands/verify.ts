import { open, stat } from 'node:fs/promises'
import { systemClock } from '../system/clock.ts'
import { reasonOf, SetupError } from '../system/setup-error.ts'
import type { VerifyOptions } from '../verify/options.ts'
import { junitError, junitXml, planJson, reportJson } from '../verify/report/documents.ts'
import { displayOf, type Output, textReporter, visible } from '../verify/report/text.ts'
import { planOf, verify } from '../verify/verify.ts'
import type { CommandIo, DaemonIo, ExitCode } from './command.ts'
import { lostReason, type Outputs } from './output.ts'
import { exposureWarning, isLoopback, type VerifyFlags, verifyOptionsOf } from './verify/verify-options.ts'

export interface VerifyCommandFlags extends VerifyFlags {
  readonly json?: boolean
  readonly junit?: string
  /** Only say what a run would do. */
  readonly dryRun?: boolean
}

export interface VerifyIo extends CommandIo, Pick<DaemonIo, 'onStop'>, Pick<Outputs, 'onLostOutput'> {
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
 * reached or trusted, does not accept the password, if the run is stopped, or if its output or result cannot be written.
 */
export async function verifyCommand(
  url: string,
  flags: VerifyCommandFlags,
  io: VerifyIo,
  checks: Checks = { planOf, verify },
): Promise<ExitCode> {
  if (flags.dryRun === true && flags.junit !== undefined) {
    throw new SetupError(
      '--junit: --dry-run checks nothing, so it has no result to write; leave one of them out',
    )
  }
  const options = await verifyOptionsOf(url, flags)
  const text = flags.json === true ? io.stderr : io.stdout
  const shown = textReporter((line) => text.write(line), displayOf(text, io.env))
  for (const warning of await warningsOf(options, flags)) io.stderr.write(`WARNING ${warning}\n`)
  if (flags.dryRun === true) {
    const plan = checks.planOf(options)
    if (flags.json === true) io.stdout.write(planJson(plan))
    else shown.announce(plan)
    return 0
  }
  const inputs = { '--password-file': flags.passwordFile, '--ca': flags.ca }
  const file = flags.junit === undefined ? undefined : await openJunitFile(flags.junit, inputs)
  const stop = stopOnSignal(io)
  const run = checks.verify(options, shown, systemClock, stop.signal)
  const report = await Promise.race([run, stop.atOnce]).catch((error: unknown) => failed(error, file, io))
  if (flags.json === true) io.stdout.write(reportJson(report))
  await file?.write(junitXml(report))
  return report.result === 'broken' ? 1 : 0
}

/** The file of `--junit`. */
interface JunitFile {
  /** Writes the document and closes the file. Rejects with a `SetupError` with exit code 1 if that fails. */
  write(xml: string): Promise<void>
}

/**
 * Opens and empties the file before the run, so that a wrong path costs none. Rejects with a `SetupError` with exit code 2, also for a
 * file that the run reads, under whatever path: it would be overwritten.
 *
 * @param inputs the files that the run reads, by flag
 */
async function openJunitFile(
  path: string,
  inputs: Readonly<Record<string, string | undefined>>,
): Promise<JunitFile> {
  if (path === '') throw new SetupError('--junit: the name of the file is empty')
  const cannotWrite = (reason: string): string => `--junit: cannot write ${path}: ${reason}`
  const found = await stat(path).catch(() => undefined)
  // To open it would take as long as its reader wants.
  if (found?.isFIFO()) throw new SetupError(cannotWrite('it is a pipe'), { remedy: 'name a file' })
  for (const [flag, input] of Object.entries(inputs)) {
    const read = input === undefined ? undefined : await stat(input)
    if (read !== undefined && read.dev === found?.dev && read.ino === found.ino) {
      throw new SetupError(
        `--junit: ${path} is the file of ${flag}, which the result would overwrite; name another`,
      )
    }
  }
  const file = await open(path, 'w').catch((error: unknown) => {
    const remedy = 'name a file in a folder that exists and is yours'
    throw new SetupError(cannotWrite(reasonOf(error)), { remedy, cause: error })
  })
  return {
    async write(xml) {
      const written = file.writeFile(xml).finally(() => file.close())
      await written.catch((error: unknown) => {
        const remedy = 'the file has no result, but the lines above are right'
        throw new SetupError(cannotWrite(reasonOf(error)), { exitCode: 1, remedy, cause: error })
      })
    },
  }
}

/** Writes why there is no report, and throws it: also if that cannot be written. */
async function failed(error: unknown, file: JunitFile | undefined, { stderr }: VerifyIo): Promise<never> {
  const problems = error instanceof SetupError ? error.problems : [reasonOf(error)]
  await file?.write(junitError(problems)).catch((other: SetupError) => {
    stderr.write(`postern verify: ${other.message}\n`)
  })
  throw error instanceof SetupError ? shownAsText(error) : error
}

/** The error with problems that cannot rewrite the screen: they may quote the server. */
function shownAsText(error: SetupError): SetupError {
  return new SetupError(error.problems.map(visible), { exitCode: error.exitCode, cause: error })
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

function stopOnSignal({ onStop, onLostOutput, stderr }: VerifyIo): Stop {
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
  // A closed terminal causes both the signal and this: it must not count as the second signal.
  onLostOutput((error) => stop.abort(new SetupError(lostReason(error), { exitCode: 1 })))
  return { signal: stop.signal, atOnce }
}

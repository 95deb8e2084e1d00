import { SetupError } from '../system/setup-error.ts'
import type { Report, Reporter, Verdict } from './verdict.ts'

/** Replaces the secrets in a text. */
export type Mask = (text: string) => string

/** What a reporter is told while a run is under way. */
export type Told = Pick<Reporter, 'progress' | 'decided'>

/** Masks what a reporter is told: the server under test may repeat a secret in any field, body or error. */
export function maskedReporter(reporter: Told, mask: Mask): Told {
  return {
    progress: (text) => reporter.progress(mask(text)),
    decided: (verdict) => reporter.decided(maskedVerdict(verdict, mask)),
  }
}

/** A report whose texts from the server are masked. */
export function maskedReport(report: Report, mask: Mask): Report {
  return {
    ...report,
    promises: report.promises.map((verdict) => maskedVerdict(verdict, mask)),
    tokens: mask(report.tokens),
  }
}

function maskedVerdict(verdict: Verdict, mask: Mask): Verdict {
  return {
    ...verdict,
    departures: verdict.departures.map(({ sent, came, wanted, clause }) => ({
      sent: mask(sent),
      came: mask(came),
      wanted: mask(wanted),
      clause,
    })),
    notes: verdict.notes.map(mask),
  }
}

/** The error itself if it shows no secret; otherwise one with the same remedy and exit code, and without its cause. */
export function maskedError(error: unknown, mask: Mask): unknown {
  if (!(error instanceof Error)) return typeof error === 'string' ? mask(error) : error
  if ([error.message, error.stack ?? ''].every((text) => mask(text) === text)) return error
  if (!(error instanceof SetupError)) return new Error(mask(error.message))
  const { fault, remedy, exitCode } = error
  return new SetupError(mask(fault).split('\n'), { exitCode, remedy })
}

import fc from 'fast-check'
import type { Case, Setting } from './case.ts'
import { shrink } from './shrink.ts'
import type { Scenes, Target, Try } from './target.ts'

/** Something that broke a promise, as small as it could be made. */
export interface Failure {
  readonly target: string
  readonly setting: Setting
  readonly seed: number
  readonly why: string
  /** More than one where no case fails by itself. */
  readonly cases: readonly Case[]
}

/** How many cases are played at a time, and between two looks at the log. */
const AT_ONCE = 48
const BATCH = 240

export interface Round {
  readonly target: Target
  readonly seed: number
  /** How many cases to play. */
  readonly count: number
  /** Told the number of cases played, now and then; false to stop. */
  readonly goOn?: (played: number) => boolean
}

/** Plays the cases that a seed gives, until one fails. */
export async function playRound(
  scenes: Scenes,
  { target, seed, count, goOn = () => true }: Round,
): Promise<{ readonly played: number; readonly failure: Failure | undefined }> {
  const attempt = await target.open(scenes)
  const cases = fc.sample(target.cases, { seed, numRuns: count })
  let played = 0
  while (played < cases.length && goOn(played)) {
    const batch = cases.slice(played, played + BATCH)
    const failed = await playBatch(scenes, attempt, batch)
    played += batch.length
    if (failed !== undefined) {
      const { why, smallest } = await reduce(scenes, attempt, failed)
      return { played, failure: { target: target.name, setting: scenes.setting, seed, why, cases: smallest } }
    }
  }
  return { played, failure: undefined }
}

/** The faults of some cases played one after another, and of the sidecar behind them. */
export async function faultsTogether(
  scenes: Scenes,
  attempt: Try,
  cases: readonly Case[],
): Promise<string[]> {
  const faults: string[] = []
  for (const item of cases) faults.push(...(await attempt(item)))
  return [...faults, ...(await faultsBehind(scenes))]
}

async function faultsBehind(scenes: Scenes): Promise<string[]> {
  const started = await scenes.started()
  const controls = (await Promise.all(started.map(({ bed }) => bed.control()))).flat()
  const strays = started
    .flatMap(({ device }) => device.strays())
    .map((stray) => `nobody asked the device: ${stray}`)
  for (const { device } of started) device.forget()
  return [...controls, ...strays, ...started.flatMap(({ bed }) => bed.newFaults())]
}

interface Failed {
  readonly why: string
  readonly suspects: readonly Case[]
}

async function playBatch(scenes: Scenes, attempt: Try, batch: readonly Case[]): Promise<Failed | undefined> {
  const waiting = [...batch]
  let failed: Failed | undefined
  const worker = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
      const [why] = await attempt(item)
      if (why !== undefined) failed ??= { why, suspects: [item] }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  const [why] = await faultsBehind(scenes)
  return failed ?? (why === undefined ? undefined : { why, suspects: batch })
}

/** Finds the case that fails by itself and makes it small; where none does, all suspects stay as they are. */
async function reduce(
  scenes: Scenes,
  attempt: Try,
  { why, suspects }: Failed,
): Promise<{ readonly why: string; readonly smallest: readonly Case[] }> {
  for (const suspect of suspects) {
    const [own] = await faultsTogether(scenes, attempt, [suspect])
    if (own === undefined) continue
    const smallest = await shrink(suspect, async (smaller) => {
      const faults = await faultsTogether(scenes, attempt, [smaller])
      return faults.some((fault) => kindOf(fault) === kindOf(own))
    })
    return { why: own, smallest: [smallest] }
  }
  return { why: `${why} (not again when played one by one)`, smallest: suspects }
}

/** What two faults share when they are the same fault of two cases. */
function kindOf(fault: string): string {
  return (fault.split(':')[0] ?? '').replaceAll(/\d+/g, 'N')
}

import fc from 'fast-check'
import type { Case, Setting } from './case.ts'
import { shrink } from './shrink.ts'
import type { PlayCase, Scenes, Target } from './target.ts'

/** A violation of the contract, shrunk. */
export interface Failure {
  readonly target: string
  readonly setting: Setting
  readonly seed: number
  readonly why: string
  /** Several if no case fails by itself. */
  readonly cases: readonly Case[]
}

/** Cases in flight, and cases between two checks of the log. */
const CONCURRENCY = 48
const BATCH = 240

export interface Round {
  readonly target: Target
  readonly seed: number
  /** Number of cases. */
  readonly count: number
  /** Called before each batch with the number of cases played. Returns false to stop. */
  readonly goOn?: (played: number) => boolean
}

/** Plays the cases of a seed until one fails. */
export async function playRound(
  scenes: Scenes,
  { target, seed, count, goOn = () => true }: Round,
): Promise<{ readonly played: number; readonly failure: Failure | undefined }> {
  const playCase = await target.open(scenes)
  const cases = fc.sample(target.cases, { seed, numRuns: count })
  let played = 0
  while (played < cases.length && goOn(played)) {
    const batch = cases.slice(played, played + BATCH)
    const failed = await playBatch(scenes, playCase, batch)
    played += batch.length
    if (failed !== undefined) {
      const { why, smallest } = await reduce(scenes, playCase, failed)
      return { played, failure: { target: target.name, setting: scenes.setting, seed, why, cases: smallest } }
    }
  }
  return { played, failure: undefined }
}

/** Plays cases one after another. Returns their faults, and those of the sidecar afterwards. */
export async function faultsTogether(
  scenes: Scenes,
  playCase: PlayCase,
  cases: readonly Case[],
): Promise<string[]> {
  const faults: string[] = []
  for (const item of cases) faults.push(...(await playCase(item)))
  return [...faults, ...(await faultsAfterwards(scenes))]
}

async function faultsAfterwards(scenes: Scenes): Promise<string[]> {
  const started = await scenes.started()
  const controls = (await Promise.all(started.map(({ bed }) => bed.control()))).flat()
  const strays = started
    .flatMap(({ device }) => device.strays())
    .map((stray) => `the device got an unexpected request: ${stray}`)
  for (const { device } of started) device.forget()
  return [...controls, ...strays, ...started.flatMap(({ bed }) => bed.newFaults())]
}

interface Failed {
  readonly why: string
  readonly suspects: readonly Case[]
}

async function playBatch(
  scenes: Scenes,
  playCase: PlayCase,
  batch: readonly Case[],
): Promise<Failed | undefined> {
  const waiting = [...batch]
  let failed: Failed | undefined
  const worker = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
      const [why] = await playCase(item)
      if (why !== undefined) failed ??= { why, suspects: [item] }
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  const [why] = await faultsAfterwards(scenes)
  return failed ?? (why === undefined ? undefined : { why, suspects: batch })
}

/** Finds a case that fails by itself and shrinks it. If there is none, returns all suspects. */
async function reduce(
  scenes: Scenes,
  playCase: PlayCase,
  { why, suspects }: Failed,
): Promise<{ readonly why: string; readonly smallest: readonly Case[] }> {
  for (const suspect of suspects) {
    const [own] = await faultsTogether(scenes, playCase, [suspect])
    if (own === undefined) continue
    const smallest = await shrink(suspect, async (smaller) => {
      const faults = await faultsTogether(scenes, playCase, [smaller])
      return faults.some((fault) => kindOf(fault) === kindOf(own))
    })
    return { why: own, smallest: [smallest] }
  }
  return { why: `${why} (not reproduced by any single case)`, smallest: suspects }
}

/** The part of a fault that does not depend on the case. */
function kindOf(fault: string): string {
  return (fault.split(':')[0] ?? '').replaceAll(/\d+/g, 'N')
}

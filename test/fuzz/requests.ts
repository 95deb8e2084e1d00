import { faultsOf, isDevices, type Reading, readAnswers } from './answers.ts'
import { type Case, tokensIn } from './case.ts'
import type { WitnessDevice } from './device.ts'
import type { Scene } from './target.ts'
import { play } from './wire.ts'

/** What became of a client's bytes. */
export interface Played extends Reading {
  /** The address that they came from. */
  readonly client: string
  readonly faults: readonly string[]
  /** The connection was reset, so that answers may have been lost. */
  readonly broken: boolean
}

/** Plays a client's bytes to the sidecar and holds all that comes back, and all that reaches the device, to the contract. */
export async function playRequests({ bed, device }: Scene<WitnessDevice>, item: Case): Promise<Played> {
  const client = bed.nextClient()
  const heard = await play(
    bed.served.url,
    { writes: item.writes.map(bed.bytesOf), ending: item.ending },
    { from: client },
  )
  const reading = readAnswers(heard.bytes, /head/i.test(item.writes.join('')))
  const { answers, fault } = reading
  const faults = answers.flatMap((answer, i) => faultsOf(answer, i === answers.length - 1))
  // Who resets the connection may find its last answer cut short.
  if (fault !== undefined && item.ending !== 'reset' && heard.end !== 'broken') faults.push(fault)
  if (heard.end === 'deaf') faults.push('the connection was never closed')
  if (answers.some(({ status }) => status === 500)) faults.push('a device that works is said to fail')
  const admitted = device.seenFrom(client).length
  if (admitted > tokensIn(item))
    faults.push(`${admitted} requests reached the device with ${tokensIn(item)} tokens`)
  return { ...reading, client, faults, broken: heard.end === 'broken' }
}

/** How many of the answers are the device's. */
export function devicesAnswers({ answers }: Reading): number {
  return answers.filter(isDevices).length
}

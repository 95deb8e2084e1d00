import { type Case, tokensIn } from './case.ts'
import type { WitnessDevice } from './device.ts'
import { faultsOf, isFromDevice, type Reading, readResponses } from './responses.ts'
import type { Scene } from './target.ts'
import { play } from './wire.ts'

/** The result of playing the bytes of a client. */
export interface Played extends Reading {
  /** Address of the client. */
  readonly client: string
  readonly faults: readonly string[]
  /** The connection was reset, so responses may be lost. */
  readonly broken: boolean
}

/** Sends the bytes of a client to the sidecar, and checks all responses and all requests at the device against the contract. */
export async function playRequests({ bed, device }: Scene<WitnessDevice>, item: Case): Promise<Played> {
  const client = bed.nextClient()
  const received = await play(
    bed.served.url,
    { writes: item.writes.map(bed.bytesOf), ending: item.ending },
    { from: client },
  )
  const reading = readResponses(received.bytes, /head/i.test(item.writes.join('')))
  const { responses, fault } = reading
  const faults = responses.flatMap((response, i) => faultsOf(response, i === responses.length - 1))
  // A client that resets the connection may lose a part of the last response.
  if (fault !== undefined && item.ending !== 'reset' && received.end !== 'broken') faults.push(fault)
  if (received.end === 'timeout') faults.push('the connection was never closed')
  if (responses.some(({ status }) => status === 500)) faults.push('a 500 although the device works')
  const admitted = device.seenFrom(client).length
  if (admitted > tokensIn(item))
    faults.push(`${admitted} requests reached the device with ${tokensIn(item)} tokens`)
  return { ...reading, client, faults, broken: received.end === 'broken' }
}

/** Number of responses from the device. */
export function deviceResponses({ responses }: Reading): number {
  return responses.filter(isFromDevice).length
}

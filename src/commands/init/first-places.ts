import { besidePlaces, isCareful, parsePlaces } from '../../config/upstream-fields.ts'
import { SetupError } from '../../system/setup-error.ts'
import type { Prompt } from '../prompt.ts'

/** The value of `upstream.max_in_flight`. `default`: the key stays at its default. */
export type PlacesChoice = number | 'auto' | 'default'

/** What the flag `--max-in-flight` says; undefined without it. Throws `SetupError` if that is no number of places. */
export function placesFromFlag(given: string | undefined): PlacesChoice | undefined {
  if (given === undefined) return undefined
  const parsed = parsePlaces(given)
  if ('problem' in parsed) throw new SetupError(`--max-in-flight: ${parsed.problem}`)
  return parsed.value
}

const MENU = `
How many requests does the device take at once?
  Enter  up to 4, learned: so few break hardly any device
  more   up to 64, learned: to find out what breaks the device, Postern may break it once
  8      or another number, if you know it
`

/** Asks how many requests the device takes at once. Another answer may be a password that is typed too early, so it is not shown. */
export async function askForPlaces(prompt: Prompt): Promise<PlacesChoice> {
  prompt.say(MENU)
  for (;;) {
    const answer = await prompt.askUnseen('At once [up to 4]: ', (given) => placesIn(given) !== undefined)
    const places = placesIn(answer)
    if (places !== undefined) return places
    prompt.say('  Press Enter, or type more, or a number from 1 to 100000\n')
  }
}

function placesIn(answer: string): PlacesChoice | undefined {
  if (answer === '') return 'default'
  const parsed = parsePlaces(/^(?:more|auto)$/i.test(answer) ? 'auto' : answer)
  return 'value' in parsed ? parsed.value : undefined
}

/** The keys of `upstream` for so many places. */
export interface FirstPlaces {
  readonly maxInFlight?: number | 'auto'
  /** The most streams, and the most WebSockets. Undefined: those of the default. */
  readonly beside?: number
}

/** So many streams, and so many WebSockets, at a device that takes few connections: each takes one of its own. */
const FEW_BESIDE = 1

export function firstPlaces(choice: PlacesChoice): FirstPlaces {
  if (choice === 'default') return {}
  return { maxInFlight: choice, ...(isCareful({ maxInFlight: choice }) && { beside: FEW_BESIDE }) }
}

/** What the keys mean together; empty if streams and WebSockets stay at their defaults. */
export function aboutPlaces({ maxInFlight, beside }: FirstPlaces): string {
  if (typeof maxInFlight !== 'number' || beside === undefined) return ''
  const most = besidePlaces([{ maxInFlight, maxStreams: beside, maxTunnels: beside, version: '1.1' }])
  const sum = maxInFlight + most.streams + most.tunnels
  return `The device gets at most ${maxInFlight} at once. Streams and WebSockets have connections of their own beside
these, so max_streams and max_tunnels are ${beside}, which makes ${sum} at most. If that is more
than the device takes, set a lower max_in_flight.
`
}

import { SetupError } from '../../system/setup-error.ts'
import type { Limit } from '../../verify/limit-fields.ts'
import { BOUNDS } from '../../verify/options.ts'
import { OUTSIDE, type OutsideId } from '../../verify/promises.ts'

type Bounds = readonly [least: number, most: number]

/** A whole number within its bounds. Throws `SetupError`. */
export function parseNumber(flag: string, text: string | undefined, absent: number, bounds: Bounds): number {
  if (text === undefined) return absent
  const number = wholeNumber(text, bounds)
  if (number === undefined) throw new SetupError(`${flag}: must be a whole number, ${range(bounds)}`)
  return number
}

/** A limit as `60/60`: requests, and seconds of the window. Throws `SetupError`. */
export function parseLimit(flag: string, text: string | undefined, absent: Limit): Limit {
  if (text === undefined) return absent
  const [first = '', second = '', ...others] = text.split('/')
  const requests = wholeNumber(first, BOUNDS.limitRequests)
  const window = wholeNumber(second, BOUNDS.limitWindow)
  if (requests === undefined || window === undefined || others.length > 0) {
    const bounds = `${range(BOUNDS.limitRequests)} requests in ${range(BOUNDS.limitWindow)} seconds`
    throw new SetupError(
      `${flag}: must be requests/seconds, such as ${absent.requests}/${absent.window}: ${bounds}`,
    )
  }
  return { requests, window }
}

/** Ids of promises, separated by commas, in either case; all if there is no text. Throws `SetupError`. */
export function parseIds(text: string | undefined): readonly OutsideId[] {
  if (text === undefined) return []
  const ids = new Set(text.split(',').map((id) => id.trim().toUpperCase()))
  const named = [...OUTSIDE.keys()].filter((id) => ids.has(id))
  const others = [...ids.difference(OUTSIDE)]
  if (others.length === 0) return named
  const problems = others.map((id) => `--only: ${faultOf(id)}`)
  throw new SetupError(problems, { remedy: `these can be checked: ${[...OUTSIDE.keys()].join(', ')}` })
}

function faultOf(id: string): string {
  if (id === '') return 'an id is missing between the commas'
  return /^[CH]\d{1,3}$/.test(id)
    ? `${id} cannot be checked from outside`
    : `${JSON.stringify(id)} is no id of a promise`
}

function wholeNumber(text: string, [least, most]: Bounds): number | undefined {
  const number = Number(text)
  return /^\d{1,6}$/.test(text) && number >= least && number <= most ? number : undefined
}

function range([least, most]: Bounds): string {
  return `${least} to ${most}`
}

import { either, type Field, section, type ValueOf } from './field.ts'
import { integer, measured } from './value-fields.ts'

const MOST = 100_000
const MUST = `must be auto, or a whole number from 1 to ${MOST}`

const fixedOrAuto: Field<number | 'auto'> = measured<number | 'auto'>({
  description: '',
  type: `whole number, 1 to ${MOST}, or \`auto\``,
  must: MUST,
  pattern: /^auto$/,
  parse(given) {
    const fits = typeof given === 'number' && Number.isInteger(given) && given >= 1 && given <= MOST
    return fits || given === 'auto' ? { value: given } : { problem: MUST }
  },
  format: (value) => value,
})

const learned = section(
  'Bounds of what is learned.',
  {
    min: integer(1, MOST, { default: 1, description: 'The least that is learned.' }),
    max: integer(1, MOST, { default: 64, description: 'The most that is learned.' }),
  },
  { minProperties: 1 },
)

interface PlacesBounds {
  readonly min: number
  readonly max: number
}

/** `upstream.max_in_flight`. */
export const placesField: Field<number | 'auto' | ValueOf<typeof learned>> = either(
  fixedOrAuto,
  learned,
  `${MUST}, or a mapping with min and max`,
  {
    default: 'auto',
    description:
      'The maximum number of concurrent requests at the device; further ones wait in the queue. `auto` learns what the device can take: docs/measure.md says how. A number is a fixed bound. `{min: 2, max: 16}` learns a bound between the two. WebSockets and streams do not count: see `upstream.max_tunnels` and `upstream.max_streams`. With 1, responses that are streams count all the same, and a connection is opened only when the device has ended the one before.',
  },
)

const AUTO: PlacesBounds = { min: 1, max: 64 }

/** The least and the most requests at a service at once; equal if `max_in_flight` is a number. */
export function placesBounds({
  maxInFlight,
}: {
  readonly maxInFlight: ValueOf<typeof placesField>
}): PlacesBounds {
  if (maxInFlight === 'auto') return AUTO
  return typeof maxInFlight === 'number' ? { min: maxInFlight, max: maxInFlight } : maxInFlight
}

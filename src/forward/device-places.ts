/** A place at the device. It is new until a request in it was answered. */
export interface DevicePlace {
  busy: boolean
  /** The head of its response has come. */
  answered: boolean
  worked: boolean
  /** When the last byte of its request was sent, its path, and how many responses had come by then. */
  sentAt: number
  path: string
  answers: number
  /** How many requests had a place then, this one included. */
  level: number
  /** The most requests that had a place at once since then, until its response. */
  peak: number
}

/** A request in a new place seems to hang. If it is answered until then (ms) beside fewer, the places were too many. */
export interface Suspicion {
  readonly place: DevicePlace
  readonly until: number
  /** The bound before. */
  readonly limit: number
}

/** The places that requests have had at the device. */
export class DevicePlaces {
  readonly #all: DevicePlace[] = []
  /** How many have worked. */
  carried = 0

  /**
   * The lowest free place, so that few requests have places for which the device has no room. It is for a request whose last byte was sent
   * at `now`.
   */
  take(path: string, level: number, answers: number, now: number): DevicePlace {
    for (const place of this.#all) {
      if (place.busy) continue
      place.busy = true
      place.answered = false
      place.sentAt = now
      place.path = path
      place.answers = answers
      place.level = place.peak = level
      return place
    }
    const place = {
      busy: true,
      answered: false,
      worked: false,
      sentAt: now,
      path,
      answers,
      level,
      peak: level,
    }
    this.#all.push(place)
    return place
  }

  /** Raises the peak of the places in use: `level` requests have one now. */
  note(level: number): void {
    for (const place of this.#all) if (place.busy) place.peak = Math.max(place.peak, level)
  }

  /** Those whose requests wait for their responses. */
  get waiting(): readonly DevicePlace[] {
    return this.#all.filter(({ busy, answered }) => busy && !answered)
  }

  /** The lowest new place whose request waits for its response. */
  get waitingNew(): DevicePlace | undefined {
    return this.waiting.find(({ worked }) => !worked)
  }

  /** A request in a new place was answered. */
  works(place: DevicePlace): void {
    place.worked = true
    this.carried += 1
  }

  /** So many places, from the first, have worked; the others are new. */
  regard(carried: number): void {
    this.carried = Math.min(carried, this.#all.length)
    for (const [index, place] of this.#all.entries()) place.worked = index < carried
  }
}

/** A place at the device. It is new until a request in it has been answered. */
export interface DevicePlace {
  busy: boolean
  /** The head of the response to its present request has come. */
  answered: boolean
  worked: boolean
  /** When the last byte of its request was sent (ms), the path, and how many responses from the device had come by then. */
  sentAt: number
  path: string
  answers: number
  /** How many requests had a place at that time, this one included. */
  level: number
  /** The most requests that had a place at once between that time and the response. */
  peak: number
}

/** A request in a new place seems to hang. If it is answered by `until` (ms) beside fewer requests, the places were too many. */
export interface Suspicion {
  readonly place: DevicePlace
  readonly until: number
  /** The bound before it was lowered for that test. */
  readonly limit: number
}

/** The places at the device that requests have had so far. */
export class DevicePlaces {
  readonly #all: DevicePlace[] = []
  /** How many places have worked. */
  carried = 0

  /**
   * Takes the lowest free place for a request whose last byte was sent at `now`. So few requests get places for which the device has no
   * room.
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

  /** `level` requests have places now: raises the peak of each. */
  note(level: number): void {
    for (const place of this.#all) if (place.busy) place.peak = Math.max(place.peak, level)
  }

  /** The places whose requests wait for their responses. */
  get waiting(): readonly DevicePlace[] {
    return this.#all.filter(({ busy, answered }) => busy && !answered)
  }

  /** The lowest new place whose request waits for its response. */
  get waitingNew(): DevicePlace | undefined {
    return this.waiting.find(({ worked }) => !worked)
  }

  /** A request in this new place was answered. */
  works(place: DevicePlace): void {
    place.worked = true
    this.carried += 1
  }

  /** Counts the first `carried` places as worked, and the others as new. */
  regard(carried: number): void {
    this.carried = Math.min(carried, this.#all.length)
    for (const [index, place] of this.#all.entries()) place.worked = index < carried
  }
}

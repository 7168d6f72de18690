use super::*;

fn polled(period: u8, phase: u8) -> EndpointRecord {
    let mut endpoint = EndpointRecord::EMPTY;
    endpoint.stage = Stage::Linked;
    endpoint.period = period;
    endpoint.phase = phase;
    endpoint
}

/// The endpoints that the controller meets in a frame, following the same pointers as it does.
fn walk(endpoints: &[EndpointRecord], frame: u8) -> Vec<u8> {
    let mut met = Vec::new();
    let mut next = follower(endpoints, (LONGEST_PERIOD, frame % LONGEST_PERIOD), None);
    while let Some(index) = next {
        met.push(index);
        let endpoint = &endpoints[usize::from(index)];
        next = follower(endpoints, (endpoint.period, endpoint.phase), Some(index));
    }
    met
}

#[test]
fn every_frame_meets_exactly_its_endpoints() {
    let endpoints = [
        polled(1, 0),
        polled(32, 7),
        polled(8, 7),
        polled(8, 3),
        polled(32, 23),
        polled(2, 1),
        polled(8, 7),
        polled(0, 0),
    ];
    for frame in 0..LONGEST_PERIOD {
        let mut met = walk(&endpoints, frame);
        met.sort_unstable();
        let due: Vec<u8> = (0..8)
            .filter(|index| {
                let endpoint = &endpoints[usize::from(*index)];
                endpoint.period != 0 && frame % endpoint.period == endpoint.phase
            })
            .collect();
        assert_eq!(met, due, "frame {frame}");
    }
}

#[test]
fn an_endpoint_that_is_not_linked_is_met_nowhere() {
    let mut endpoints = [polled(1, 0), polled(4, 2), polled(8, 2)];
    endpoints[1].stage = Stage::Out;
    for frame in 0..LONGEST_PERIOD {
        assert!(!walk(&endpoints, frame).contains(&1));
    }
}

#[test]
fn intervals_round_down_to_powers_of_two() {
    assert_eq!(period(Speed::High, 1), (1, 1));
    assert_eq!(period(Speed::High, 3), (1, 4));
    assert_eq!(period(Speed::High, 4), (1, 8));
    assert_eq!(period(Speed::High, 9), (32, 8));
    assert_eq!(period(Speed::High, 12), (32, 8), "a hub's 256 ms");
    assert_eq!(period(Speed::High, 255), (32, 8), "nonsense is clamped");
    assert_eq!(period(Speed::High, 0), (1, 1));
    assert_eq!(period(Speed::Full, 0), (1, 8));
    assert_eq!(period(Speed::Full, 10), (8, 8));
    assert_eq!(period(Speed::Low, 255), (32, 8));
}

#[test]
fn high_speed_masks_repeat_inside_the_frame() {
    let start = |step, turn| masks(Speed::High, step, turn).start;
    assert_eq!(start(1, 5), 0xff);
    assert_eq!(start(2, 1), 0xaa);
    assert_eq!(start(4, 2), 0x44);
    assert_eq!(start(8, 9), 0x02);
}

#[test]
fn split_completions_stay_in_their_frame() {
    for turn in 0..=u8::MAX {
        let masks = masks(Speed::Full, 8, turn);
        assert_eq!(masks.start.count_ones(), 1);
        assert_eq!(masks.complete.count_ones(), 3);
        assert_eq!(
            masks.complete.trailing_zeros(),
            masks.start.trailing_zeros() + 2
        );
    }
}

#[test]
fn a_new_endpoint_goes_where_fewest_are() {
    let others = [polled(2, 0), polled(4, 1)];
    let slot = choose(Speed::High, 6, &others);
    assert_eq!((slot.period, slot.phase), (4, 3));
}

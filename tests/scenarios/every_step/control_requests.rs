//! The device answers its n-th control request by a stall, by silence, too late, with too much or too
//! little, for every n from plug-in on.

use super::Course;
use crate::controller::{Faults, LINKS};
use crate::rig::disk_at;
use rootport_models::device::SECOND;
use rootport_models::device::base::{Answer, Request};

fn answers() -> Vec<Answer> {
    let late = |seconds| Answer::After(seconds * SECOND, Box::new(Answer::Data(vec![0])));
    vec![
        Answer::Stall,
        Answer::Silent,
        Answer::Data(Vec::new()),
        Answer::Data(vec![0; 3]),
        Answer::Data(vec![0xff; 64]),
        Answer::Overlong(vec![0; 100]),
        late(7),
        Answer::After(u64::MAX, Box::new(Answer::Stall)),
    ]
}

#[test]
fn any_control_request_may_be_answered_in_any_way_once() {
    for &link in LINKS {
        for (index, answer) in answers().into_iter().enumerate() {
            for count in 0..8 {
                let device = disk_at(link)
                    .control_some(Request::ANY, count..count + 1, answer.clone())
                    .build();
                let mut course = Course::new(link, u64::from(count) + index as u64, Faults::none());
                let results = course.run(&device);
                let good = results.is_some_and(|results| results.all_good());
                assert!(
                    good,
                    "{answer:?} to request {count}: {results:?}, {}, {:?}",
                    course.rig.describe(),
                    device.requests()
                );
                course.end();
            }
        }
    }
}

#[test]
fn every_control_request_from_any_one_on_may_be_answered_in_any_way() {
    for &link in LINKS {
        for (index, answer) in answers().into_iter().enumerate() {
            for count in 0..8 {
                let device = disk_at(link)
                    .control_some(Request::ANY, count..u32::MAX, answer.clone())
                    .build();
                let mut course = Course::new(link, u64::from(count) + index as u64, Faults::none());
                let _any = course.run(&device);
                course.end();
            }
        }
    }
}
